"""Times every level of the GPU, beside the CPU and, if asked, beside NPP and CuPy.

Rules: data are seeded 8-bit noise; compiling and the first run are not counted. A kernel's time
is the median of the repeats between CUDA events on an otherwise idle stream; the image is on
the card, and in its L2 cache if it fits there, for the libraries too. End to end is from
pageable memory to pageable memory: upload, kernel, download, wrapping; a new image each time.
The CPU's times are those of its *compute* stage on as large a square of the same picture as
takes no longer than `CPU_SECONDS`, scaled by the pixels; the report has that square's side.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from app import bench_peers, filters
from app.bench import LONGEST, Table, cases, difference, label_of, picture, sides_up_to
from app.bench_subjects import Subject, subject
from app.engine.backend import Backend
from app.engine.control import CancelToken
from app.engine.image import Image
from app.engine.request import Device, Request, Result
from app.engine.run import execute
from app.errors import DeviceUnavailable
from app.filters.spec import FilterSpec, Level, Pixels

CPU_SECONDS = 0.2
"""How long a run of the CPU may take before a smaller square is used."""

SIZES = (128, 256, 512, 1024, 2048, 4096, 16384)
"""Sides in the thesis, and one that does not fit into any cache."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What to time.

    Attributes
    ----------
    filters : tuple of str
        Filter ids; empty for all.
    sizes, masks : tuple of int
        Sides of the square pictures, and mask sizes, in pixels.
    levels : tuple of str
        Levels of the GPU; empty for all.
    repeat : int
        Timed runs of each row.
    peers : bool
        Whether to time NPP and CuPy too.
    """

    filters: tuple[str, ...]
    sizes: tuple[int, ...]
    masks: tuple[int, ...]
    levels: tuple[str, ...]
    repeat: int
    peers: bool


@dataclass(frozen=True, kw_only=True)
class Row:
    """The times of one filter at one level, or by one library.

    Attributes
    ----------
    label : str
        The filter and the parameters that were chosen, for tables.
    filter, border, device : str
    level : str
        A level of the GPU, or a library.
    parameters : mapping of str to str
        Every parameter, in the form that the command line takes.
    width, height, channels : int
        Of the picture that was filtered.
    asked : int
        Side that was asked for; larger than `width` if that would have taken too long.
    seconds : tuple of float
        Every repeat of the kernel.
    stages : mapping of str to tuple of float
        Every repeat of each stage of the runs end to end; empty for libraries.
    bytes : float
        Least traffic with the card's memory, read + written; the libraries' result may be
        wider, which is not counted for them.
    copy_rate : float or None
        Bytes per second, read + written, of a copy on the card.
    cpu_seconds : mapping of str to float
        The CPU's time for the same picture, by level.
    cpu_sides : mapping of str to int
        Side of the square that it was scaled from.
    difference : str
        How a library's result differs from ours away from the border, or empty.
    notices : tuple of str
    """

    label: str
    filter: str
    parameters: Mapping[str, str]
    border: str
    device: str
    level: str
    width: int
    height: int
    channels: int
    asked: int
    seconds: tuple[float, ...]
    stages: Mapping[str, tuple[float, ...]]
    bytes: float
    copy_rate: float | None
    cpu_seconds: Mapping[str, float]
    cpu_sides: Mapping[str, int]
    difference: str = ""
    notices: tuple[str, ...] = ()

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def bytes_per_second(self) -> float:
        return self.bytes / self.median

    @property
    def end_to_end(self) -> float | None:
        """Median of the runs' totals, in seconds."""
        totals = [sum(run) for run in zip(*self.stages.values(), strict=True)]
        return statistics.median(totals) if totals else None


@dataclass(frozen=True)
class _Matter:
    """One filter with its parameters, and what it is run on and with."""

    spec: FilterSpec
    case: Mapping[str, Any]
    subject: Subject
    backends: Mapping[str, Backend]
    token: CancelToken

    def request(self, pixels: Pixels, device: Device, level: str, repeat: int = 1) -> Request:
        """Return a request on an image of its own, which is not on the card yet."""
        return Request.create(
            Image.from_array(pixels, "noise"),
            self.spec.id,
            self.case,
            border=self.subject.border,
            device=device,
            level=level,
            repeat=repeat,
        )

    def run(self, request: Request) -> Result:
        return execute(request, self.backends, self.token)


def measure(
    settings: Settings,
    backends: Mapping[str, Backend],
    token: CancelToken,
    announce: Callable[[str], None],
) -> Iterator[Row]:
    """Yield a row for each filter, parameter set, size and level, and for each library.

    Parameters
    ----------
    announce : callable
        Called with what is about to be timed.

    Raises
    ------
    AppError
        For a filter, a level or a mask size that does not exist, or without a GPU.
    Cancelled
        If `token` was set.
    """
    state = backends[Device.GPU].availability()
    if not state.available:
        raise DeviceUnavailable(
            f"There is no GPU to time: {state.summary}", "“info” lists what a GPU needs."
        )
    specs = [filters.get(name) for name in settings.filters] or filters.discover().values()
    plan = [
        (spec, case, size)
        for spec in specs
        if spec.gpu_levels
        for case in cases(spec, settings.masks)
        for size in settings.sizes
    ]
    for spec, case, _ in plan:
        spec.validate(case)
    for number, (spec, case, size) in enumerate(plan, 1):
        matter = _Matter(spec, case, subject(spec.id), backends, token)
        what = f"{number}/{len(plan)}  {label_of(spec, case)}, {size}×{size}"
        announce(f"{what}, CPU")
        cpu = {level.id: _cpu(matter, level, size) for level in backends[Device.CPU].levels(spec)}
        row = None
        for level in backends[Device.GPU].levels(spec):
            if level.id in settings.levels or not settings.levels:
                announce(f"{what}, {level.id}")
                row = _level_row(matter, level, size, settings.repeat, cpu)
                yield row
        if row is not None and settings.peers:
            announce(f"{what}, libraries")
            yield from _peer_rows(matter, row, settings.repeat, cpu)


def _cpu(matter: _Matter, level: Level, size: int) -> tuple[float, int]:
    """Return the seconds a pixel of a CPU level, and the side they were taken at."""
    for side in sides_up_to(size):
        pixels = picture(side, matter.subject.channels)
        seconds = _stage(matter.run(matter.request(pixels, Device.CPU, level.id)), "compute")
        if 4 * seconds > CPU_SECONDS:
            break
    request = matter.request(pixels, Device.CPU, level.id)
    seconds = statistics.median(_stage(matter.run(request), "compute") for _ in range(3))
    return seconds / side**2, side


def _level_row(
    matter: _Matter, level: Level, size: int, repeat: int, cpu: Mapping[str, tuple[float, int]]
) -> Row:
    for side in sides_up_to(size):
        pixels = picture(side, matter.subject.channels)
        request = matter.request(pixels, Device.GPU, level.id)
        if 4 * _stage(matter.run(request), "kernel") > LONGEST:
            break
    stages: dict[str, list[float]] = {}
    for _ in range(repeat):
        result = matter.run(matter.request(pixels, Device.GPU, level.id))
        for name in dict.fromkeys(stage.name for stage in result.stages if stage.counted):
            stages.setdefault(name, []).append(_stage(result, name))
    result = matter.run(matter.request(pixels, Device.GPU, level.id, repeat))
    metrics = {metric.name: metric.value for metric in result.metrics}
    (kernel,) = (stage for stage in result.stages if stage.name == "kernel")
    return Row(
        **_common(matter, result, size, side, cpu),
        level=level.id,
        seconds=kernel.repeats or (kernel.seconds,),
        stages={name: tuple(times) for name, times in stages.items()},
        bytes=metrics["effective rate"] * kernel.seconds,
        copy_rate=metrics.get("copy rate"),
        notices=result.notices,
    )


def _peer_rows(
    matter: _Matter, ours: Row, repeat: int, cpu: Mapping[str, tuple[float, int]]
) -> Iterator[Row]:
    """Yield the libraries' rows for the picture that the last level was timed with."""
    pixels = picture(ours.width, matter.subject.channels)
    result = matter.run(matter.request(pixels, Device.GPU, ours.level))
    parameters, border = result.request.parameters, result.request.border
    margin = matter.spec.radius(parameters)
    inside = np.s_[margin : ours.height - margin, margin : ours.width - margin]
    for peer in bench_peers.counterparts(matter.spec.id, pixels, parameters, border):
        matter.token.check()
        differs = difference(result.image.pixels[inside], peer.result()[inside], "ours")
        yield Row(
            **_common(matter, result, ours.asked, ours.width, cpu),
            level=peer.library,
            seconds=peer.seconds(repeat),
            stages={},
            bytes=ours.bytes,
            copy_rate=ours.copy_rate,
            difference=differs,
        )


def _common(
    matter: _Matter, result: Result, asked: int, side: int, cpu: Mapping[str, tuple[float, int]]
) -> dict[str, Any]:
    spec, parameters = matter.spec, result.request.parameters
    return {
        "label": label_of(spec, matter.case),
        "filter": spec.id,
        "parameters": {
            parameter.name: parameter.format(parameters[parameter.name])
            for parameter in spec.parameters
        },
        "border": str(matter.subject.border),
        "device": result.device,
        "width": side,
        "height": side,
        "channels": matter.subject.channels,
        "asked": asked,
        "cpu_seconds": {name: each * side**2 for name, (each, _) in cpu.items()},
        "cpu_sides": {name: taken_at for name, (_, taken_at) in cpu.items()},
    }


def _stage(result: Result, name: str) -> float:
    return sum(stage.seconds for stage in result.stages if stage.name == name)


LEGEND = (
    "Seeded 8-bit noise; medians. GB/s: bytes that have to be read and written at least, by the "
    "kernel's time; % copy: of what a copy on this card reaches. Images up to the size of the L2 "
    "cache stay in it between repeats. × serial, × parallel: how many times longer the CPU's "
    "computing takes than the GPU end to end (of a library: than its kernel); where the CPU would "
    "take long, its time for a part of the picture is scaled by the pixels."
)
TABLE = Table(
    (
        "filter",
        "level",
        "size",
        "kernel ms",
        "GB/s",
        "% copy",
        "end to end ms",
        "× serial",
        "× parallel",
        "remark",
    ),
    (46, 12, 6, 9, 7, 6, 13, 9, 10, 6),
    (0, 1, 9),
)


def format_row(row: Row) -> str:
    """Return the line of the table that shows `row`."""
    total = row.end_to_end
    compared = total or row.median
    remarks = [row.difference] if row.difference else []
    if row.width < row.asked:
        remarks.append(f"{row.asked} would be slow")
    for name, side in row.cpu_sides.items():
        if side < row.width:
            remarks.append(f"{name} from {side}")
    remarks += row.notices
    return TABLE.line(
        (
            row.label,
            row.level,
            str(row.width),
            f"{row.median * 1e3:.4f}",
            f"{row.bytes_per_second / 1e9:.0f}",
            f"{row.bytes_per_second / row.copy_rate:.0%}" if row.copy_rate else "",
            f"{total * 1e3:.3f}" if total else "",
            *(f"{row.cpu_seconds[name] / compared:.1f}" for name in ("serial", "parallel")),
            "; ".join(remarks),
        )
    )
