"""The counts of the emulated GPU beside those of NVIDIA's profiler on a real card.

    python resources/bench/counts.py commands > counts.sh     # on the machine with the card
    sh counts.sh                                              # writes counts/CASE.csv
    python resources/bench/counts.py compare counts           # anywhere with g++

Each case is a filter at a level, on a picture of 1024 x 1024 bytes. The profiler counts what the
compiled kernel did; the emulated GPU counts what the source asks for. They are to agree within 2 %
in every metric that both have. A profiler's file has a row for each kernel; launches of a kernel
that were cut into several are added up.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kernelscope.backends.emulator.tracing import Tracer
from kernelscope.engine.request import Request
from kernelscope.images.image import Image
from kernelscope.schema.devices import Device
from kernelscope.traffic.totals import Key, Totals, totals_of
from kernelscope.traffic.trace import Event, MemorySpace

SIDE = 1024
TOLERANCE = 0.02

_MASK = [[(s * t) % 7 + 1 for t in range(1, 10)] for s in range(1, 10)]
_LEVELS = ("global", "constant", "shared", "texture")


class Case(NamedTuple):
    """A filter with its parameters, as values and as options of the command line."""

    filter: str
    values: Mapping[str, Any]
    options: str


CASES = (
    Case("mean", {"size": 5}, "--size 5"),
    Case("mask", {"mask": _MASK}, f"--mask '{'; '.join(' '.join(map(str, r)) for r in _MASK)}'"),
    Case("median", {"size": 5}, "--size 5"),
    Case("sobel", {}, ""),
)

GLOBAL_READ, GLOBAL_WRITE = (MemorySpace.GLOBAL, Event.READ), (MemorySpace.GLOBAL, Event.WRITE)
SHARED_READ, SHARED_WRITE = (MemorySpace.SHARED, Event.READ), (MemorySpace.SHARED, Event.WRITE)
METRICS: dict[str, tuple[Key, str]] = {
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": (GLOBAL_READ, "requests"),
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum": (GLOBAL_WRITE, "requests"),
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": (GLOBAL_READ, "sectors"),
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": (GLOBAL_WRITE, "sectors"),
    "smsp__sass_data_bytes_mem_shared_op_ld.sum": (SHARED_READ, "accesses"),  # bytes
    "smsp__sass_data_bytes_mem_shared_op_st.sum": (SHARED_WRITE, "accesses"),
    "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld.sum": (SHARED_READ, "wavefronts"),
    "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_st.sum": (SHARED_WRITE, "wavefronts"),
    "smsp__inst_executed_op_texture.sum": ((MemorySpace.TEXTURE, Event.READ), "requests"),
}
"""What the profiler calls the figures.

Not its counts of instructions: those include the ones that no lane of a warp executes, where the
compiler put a condition into the instruction. Nor ``data_bank_conflicts``, which counts turns that
other requests took as well: turns by the addresses alone are those named ``sass``."""


def picture() -> Image:
    """Return the picture of all cases."""
    return Image.from_array(np.random.default_rng(7).integers(0, 256, (SIDE, SIDE), np.uint8))


def levels_of(case: Case) -> list[str]:
    request = Request.create(picture(), case.filter, case.values)
    offered = [each.id for each in request.step.filter.levels(Device.GPU)]
    return [each for each in _LEVELS if each in offered]


def commands() -> Iterator[str]:
    """Yield the lines of a script that profiles all cases."""
    yield "set -e"
    yield "mkdir -p counts"
    yield "python resources/bench/counts.py picture counts/picture.bmp"
    metrics = ",".join(METRICS)
    for case in CASES:
        for level in levels_of(case):
            name = f"{case.filter}_{level}"
            yield (
                f"ncu --csv --page raw --print-units base --kernel-name-base function"
                f" --kernel-name {name} --metrics {metrics}"
                f" python -m kernelscope apply {case.filter} counts/picture.bmp counts/{name}.bmp"
                f" --device gpu --level {level} {case.options} > counts/{name}.csv"
            )


def read_profile(text: str, kernel: str) -> tuple[dict[str, float], int]:
    """Return the sums of a profiler's metrics over the launches of a kernel, and the blocks.

    Parameters
    ----------
    text : str
        Its output, which may begin with lines of its own and of the program.
    """
    lines = text.splitlines()
    start = next((n for n, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        raise SystemExit(f"There is no table of the profiler for {kernel}.")
    sums: dict[str, float] = {}
    blocks = 0
    for row in csv.DictReader(lines[start:]):
        if not row["ID"] or row["Kernel Name"].split("(")[0] != kernel:
            continue  # the row of units, and others
        sides = [int(each) for each in row["Grid Size"].strip("()").split(",")]
        blocks += int(np.prod(sides))
        for metric in METRICS:
            if row.get(metric):
                sums[metric] = sums.get(metric, 0) + float(row[metric].replace(",", ""))
    return sums, blocks


class Row(NamedTuple):
    """A metric of a case, counted twice."""

    kernel: str
    metric: str
    profiled: float
    counted: float

    @property
    def agrees(self) -> bool:
        """Whether they differ by no more than the tolerance."""
        return abs(self.profiled - self.counted) <= TOLERANCE * max(self.profiled, self.counted)


def compare(
    kernel: str, profile: tuple[Mapping[str, float], int], totals: Mapping[Key, Totals], blocks: int
) -> list[Row]:
    """Return each metric of a kernel; a kernel that ran several times is counted as often."""
    sums, profiled_blocks = profile
    if not profiled_blocks or profiled_blocks % blocks:
        raise SystemExit(
            f"{kernel} ran {profiled_blocks} blocks, which is no multiple of {blocks}."
        )
    times = profiled_blocks // blocks
    return [
        Row(kernel, metric, sums[metric] / times, getattr(totals.get(key, Totals()), field))
        for metric, (key, field) in METRICS.items()
        if metric in sums
    ]


def compare_all(folder: Path) -> int:
    """Print all cases of which there is a file; return the exit status."""
    tracer, rows = Tracer(), list[Row]()
    for case in CASES:
        request = Request.create(picture(), case.filter, case.values)
        for level in request.step.filter.levels(Device.GPU):
            path = folder / f"{case.filter}_{level.id}.csv"
            if level.id not in _LEVELS or not path.is_file():
                continue
            found = tracer.count(request, level)
            profile = read_profile(path.read_text(encoding="utf-8"), path.stem)
            blocks = found[-1].scene.blocks
            rows += compare(path.stem, profile, totals_of(found), blocks)
    tracer.close()
    for row in rows:
        mark = "" if row.agrees else "   differs"
        print(f"{row.kernel:16} {row.metric:58} {row.profiled:12,.0f} {row.counted:12,.0f}{mark}")
    wrong = sum(not row.agrees for row in rows)
    print(f"{len(rows) - wrong} of {len(rows)} figures agree within {100 * TOLERANCE:.0f} %.")
    return 1 if wrong or not rows else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("task", choices=("commands", "picture", "compare"))
    parser.add_argument("path", type=Path, nargs="?", default=Path("counts"))
    options = parser.parse_args()
    if options.task == "commands":
        print("\n".join(commands()))
        return 0
    if options.task == "picture":
        from kernelscope.files import write_image

        write_image(picture(), options.path)
        return 0
    return compare_all(options.path)


if __name__ == "__main__":
    sys.exit(main())
