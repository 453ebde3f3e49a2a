"""Rungs of the ladder: the places where a filter can run, or the reasons why it cannot.

Auto               the CPU, or the faster of CPU and GPU; never the emulated GPU
CPU  Serial
GPU  Tuned         obstacle: no NVIDIA driver was found
Emulated GPU       only with a compiler, after all others
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kernelscope.base.installed import install_command
from kernelscope.engine.backend import Availability, Backend
from kernelscope.engine.options import Device
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.levels import GPU_LEVELS, Level


class RungPlace(NamedTuple):
    """Device and level of a run; without a level the fastest of the device."""

    device: Device
    level: str | None = None

    @property
    def kernels(self) -> Device:
        """The device whose kernels run there, and whose pages explain the level."""
        return Device.GPU if self.device is Device.EMULATED else self.device


AUTO = RungPlace(Device.AUTO)


@dataclass(frozen=True)
class Rung:
    place: RungPlace
    name: str  # name of the level: ``Shared memory``
    device: str = ""  # name of the device: ``GPU``; empty for Auto
    level: Level | None = None  # None for Auto
    obstacle: str = ""  # why it cannot run here; empty if it can
    gap: bool = False  # the level has no meaning for this filter, on any machine
    choice: str = ""  # of Auto: how it chooses, and why it cannot choose if it cannot

    @property
    def full_name(self) -> str:
        return self.level.on(self.device) if self.level is not None else self.name


def rungs(
    spec: FilterSpec, backends: Mapping[str, Backend], availability: Mapping[str, Availability]
) -> tuple[Rung, ...]:
    """Return Auto and the levels of a filter: those of the CPU, of the GPU, of the emulated one.

    `availability`: by backend; one that is missing is still being looked for. The emulated GPU has
    no rungs without a compiler.
    """
    found = []
    real = [each for each in backends.values() if each.id != Device.EMULATED]
    for backend in reversed(real):
        levels, gaps = backend.levels(spec), spec.gaps(backend.id)
        if backend.id != Device.CPU and not levels:
            continue  # `only_cpu` has the reason
        state = availability.get(backend.id)
        missing = ""
        if backend.id != Device.CPU and (state is None or not state.available):
            missing = f"Looking for a {backend.name}…"
            if state is not None:
                missing = f"{state.summary}{without_gpu(availability)}"
        for level in with_gaps(levels, gaps):
            gap = gaps.get(level.id, "")
            place = RungPlace(Device(backend.id), level.id)
            found.append(Rung(place, level.name, backend.name, level, gap or missing, bool(gap)))
    usable = [rung for rung in found if not rung.obstacle]
    devices = dict.fromkeys(rung.device for rung in usable)
    name = f"Auto: {usable[-1].full_name}" if len(devices) == 1 else "Auto: the faster device"
    auto = Rung(AUTO, name, choice=_choice(spec, usable, len(devices) == 1, found))
    return auto, *found, *_emulated(spec, backends, availability)


def _choice(spec: FilterSpec, usable: list[Rung], alone: bool, found: list[Rung]) -> str:
    if not alone:
        return (
            "Auto chooses by the times of earlier runs of this filter on both devices, copies to "
            "the GPU included, and until it has both by the size of the picture; then it takes "
            "the fastest level of that device."
        )
    reason = only_cpu(spec) or next(
        (rung.obstacle for rung in found if rung.obstacle and not rung.gap), ""
    )
    return " ".join(filter(None, (f"There is one device to choose: {usable[-1].device}.", reason)))


def _emulated(
    spec: FilterSpec, backends: Mapping[str, Backend], availability: Mapping[str, Availability]
) -> list[Rung]:
    """Return the levels of a filter on the emulated GPU, if there is a compiler for it."""
    backend = backends.get(Device.EMULATED.value)
    state = availability.get(Device.EMULATED.value)
    if backend is None or state is None or not state.available:
        return []
    return [
        Rung(RungPlace(Device.EMULATED, level.id), level.name, backend.name, level)
        for level in backend.levels(spec)
    ]


def without_gpu(availability: Mapping[str, Availability]) -> str:
    """Return how the kernels of a GPU can run without one, after a space.

    Empty if that is not known yet.
    """
    state = availability.get(Device.EMULATED.value)
    if state is None:
        return ""
    if state.available:
        where = "in the group “Emulated GPU” of the levels"
        return f" GPU kernels run on the processor {where}, not timed."
    return (
        " To run GPU kernels on the processor, install g++ or clang++, or run: "
        f"{install_command('emulator')}"
    )


def only_cpu(spec: FilterSpec) -> str:
    if spec.levels(Device.GPU.value):
        return ""
    reasons = dict.fromkeys(spec.gaps(Device.GPU.value).values())
    return f"On the CPU only. {' '.join(reasons)}".strip()


def with_gaps(levels: Iterable[Level], gaps: Mapping[str, str]) -> list[Level]:
    found = list(levels)
    for number, level in enumerate(GPU_LEVELS):
        if level.id in gaps:
            later = GPU_LEVELS[number + 1 :]
            place = next((n for n, each in enumerate(found) if each in later), len(found))
            found.insert(place, level)
    return found


def chosen_place(wanted: RungPlace, offered: Sequence[Rung]) -> RungPlace:
    """Return the place where a run goes: the wanted one, else the device's fastest, else Auto."""
    usable = [rung.place for rung in offered if not rung.obstacle]
    if wanted in usable:
        return wanted
    if wanted.device is Device.AUTO:  # with a level, as older settings have it
        real = (place for place in usable if place.device is not Device.EMULATED)
        return next((place for place in real if place.level == wanted.level), AUTO)
    has_device = any(place.device is wanted.device for place in usable)
    return RungPlace(wanted.device) if has_device else AUTO


def marked(place: RungPlace, offered: Sequence[Rung]) -> RungPlace:
    """Return the rung that stands for a place: for a device alone, its fastest usable level."""
    usable = [rung.place for rung in offered if not rung.obstacle]
    if place in usable:
        return place
    return [each for each in usable if each.device is place.device][-1]
