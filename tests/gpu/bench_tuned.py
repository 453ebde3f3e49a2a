"""Look for levels that are faster than *tuned*: ``python -m tests.gpu.bench_tuned [FILTER ...]``.

Every filter of pictures whose plan is one kernel, with the parameters of its tests, in every type,
grey and in colour, small and large. Borders take turns, as compiling for all of them takes long;
``--all`` has each of them everywhere. Where *tuned* runs the kernel of another level, its own takes
part as `OWN`: the bounds of `by_size` are chosen from these times. To the kernel of a texture comes
the copy of the picture into its array, which no other level needs. Exit status 1 if anything is
faster by more than `MARGIN`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernelscope import filters
from kernelscope.images.image import DTYPES
from kernelscope.schema.borders import Border
from kernelscope.schema.launch import Cuda, CudaPlan, CudaTask, Launch
from kernelscope.schema.levels import SINGLE_BLOCK, TEXTURE, TUNED
from tests.backends.specialisations import tuned_at_any_size
from tests.contract.test_pictures import make, parameters_of, test_module
from tests.gpu.contenders import (
    Card,
    Pictures,
    compile_all,
    contender_of,
    glance,
    job_of,
    measure,
    plan_of,
    task_of,
)

MARGIN = 1.05
"""Ratio above which a kernel counts as slower; two runs of one kernel may differ by less."""

OWN = "tuned-own"
"""Name of the kernel that *tuned* has of its own, where it runs that of another level."""

HOPELESS = 1.5
"""A level whose second launch takes this many times as long as that of *tuned* is not timed."""


@dataclass(frozen=True)
class Setting:
    """The comparison of all levels of a filter."""

    filter_id: str
    case: int
    dtype: np.dtype[Any]
    channels: int
    border: Border

    @property
    def levels(self) -> list[str]:
        spec = filters.get(self.filter_id)
        return [level.id for level in spec.levels("gpu") if level is not SINGLE_BLOCK]

    @property
    def parameters(self) -> dict[str, Any]:
        return parameters_of(self.filter_id, self.case)

    def __str__(self) -> str:
        words = (self.dtype.name, "grey" if self.channels == 1 else "colour", self.border.value)
        spec = filters.get(self.filter_id)
        return f"{spec.describe(spec.validate(self.parameters))}, {', '.join(words)}"

    def launches(self, side: int) -> dict[str, tuple[CudaTask, Launch]]:
        """Return the launches at each level, and `OWN`, for a picture `side` pixels wide."""
        shape, found = (side, side, self.channels), {}
        for name in self.levels:
            task = task_of(self.filter_id, shape, self.dtype, self.parameters, self.border, name)
            found[name] = task, plan_of(task, self.filter_id)
        task, planned = found[TUNED.id]
        with tuned_at_any_size():
            own = plan_of(task, self.filter_id)
        return found if own.kernel == planned.kernel else {**found, OWN: (task, own)}


def settings(wanted: Sequence[str], *, every_border: bool) -> Iterator[Setting]:
    number = itertools.count()
    for spec in filters.discover().values():
        if TUNED not in spec.levels("gpu") or (wanted and spec.id not in wanted):
            continue
        cases = range(len(test_module(spec.id).CASES))  # type: ignore[union-attr]
        dtypes = [np.dtype(each) for each in DTYPES]
        for case, dtype, channels in itertools.product(cases, dtypes, (1, 3)):
            turn = next(number) % len(spec.borders)
            borders = spec.borders if every_border else (spec.borders[turn],)
            for border in borders:
                setting = Setting(spec.id, case, dtype, channels, border)
                if _is_one_kernel(setting):
                    yield setting


def _is_one_kernel(setting: Setting) -> bool:
    spec = filters.get(setting.filter_id)
    shape = (512, 512, setting.channels)
    for level in setting.levels:
        task = task_of(
            setting.filter_id, shape, setting.dtype, setting.parameters, setting.border, level
        )
        plan = CudaPlan.of(spec.implementation(Cuda).plan(task))  # type: ignore[misc]
        if len(plan.launches) > 1 or plan.scratch or plan.launches[0].mapped:
            return False
    return True


def jobs(found: Sequence[Setting], sides: Sequence[int], architecture: str) -> Iterator[Any]:
    for setting, side in itertools.product(found, sides):
        for _, launch in setting.launches(side).values():
            yield job_of(setting.filter_id, launch, architecture)


def compare(pictures: Pictures, setting: Setting, repeats: int) -> tuple[str, dict[str, float]]:
    """Return the kernel of *tuned*, and the seconds of it and of the levels that come close.

    Where *tuned* runs the kernel of another level, the two have one time.
    """
    card, launches = pictures.card, setting.launches(len(pictures.source))
    contenders = {
        name: contender_of(pictures, name, setting.filter_id, task, launch)
        for name, (task, launch) in launches.items()
    }
    kernel = launches[TUNED.id][1].kernel
    runs = next(name for name, (_, launch) in launches.items() if launch.kernel == kernel)
    once = {name: glance(card, contender) for name, contender in contenders.items()}
    most = HOPELESS * once[runs]
    close = [name for name in once if once[name] < most or name in (runs, TUNED.id, OWN)]
    timed = [contenders[name] for name in close if name != TUNED.id or runs == name]
    times = measure(card, timed, pictures.count, repeats)
    times.setdefault(TUNED.id, times[runs])
    medians = {name: statistics.median(times[name]) for name in close}
    if TEXTURE.id in medians:
        medians[TEXTURE.id] += pictures.fill_seconds
    return kernel, medians


def grouped(found: Sequence[Setting]) -> dict[tuple[np.dtype[Any], int], list[Setting]]:
    """Return settings by type and channels, so that they can share pictures."""
    groups: dict[tuple[np.dtype[Any], int], list[Setting]] = {}
    for setting in found:
        groups.setdefault((setting.dtype, setting.channels), []).append(setting)
    return groups


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("filters", nargs="*")
    parser.add_argument("--sides", type=int, nargs="+", default=[128, 1024, 4096])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--all", action="store_true", help="every border everywhere")
    parser.add_argument("--out", type=Path, help="where to write every time, as JSON")
    options = parser.parse_args(arguments)
    found = list(settings(options.filters, every_border=options.all))
    rows, slower = [], 0
    with Card() as card:
        compile_all(jobs(found, options.sides, card.architecture))
        print(f"{card.name}, {len(found)} settings, sides {options.sides}", flush=True)
        for side, (key, group) in itertools.product(options.sides, grouped(found).items()):
            dtype, channels = key
            source = make(dtype, "random", (side, side))[:, :, :channels]
            room = (side, side, 3)  # for the settings that make colour out of grey as well
            pictures = Pictures(card, np.ascontiguousarray(source), room, most=24)
            for setting in group:
                kernel, times = compare(pictures, setting, options.repeats)
                best = min(times, key=times.__getitem__)
                row = {"setting": str(setting), "side": side, "kernel": kernel, "times": times}
                rows.append(row)
                if times[TUNED.id] > MARGIN * times[best]:
                    slower += 1
                    print(
                        f"{setting}, {side}x{side}: {kernel} {times[TUNED.id] * 1e3:.4f} ms, "
                        f"{best} {times[best] * 1e3:.4f}, {times[TUNED.id] / times[best]:.2f}",
                        flush=True,
                    )
            pictures.free()
            if options.out:  # each time, so that a bench that is cut off leaves its rows
                options.out.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    print(f"{len(rows)} comparisons: tuned is slower in {slower}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
