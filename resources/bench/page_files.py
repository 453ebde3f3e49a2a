"""The measurements that the page is made from: JSON files next to it."""

from __future__ import annotations

import functools
from pathlib import Path

from kernelscope.bench.plan import Plan
from kernelscope.bench.report import Report, load, merge

FOLDER = Path(__file__).parent
PAGE, MANUAL = FOLDER / "README.md", FOLDER.parent / "docs"

EXPERIMENTS = (
    *("f-levels", "f-tables", "f-graphs", "f-selection", "m-ladder", "n-nlm", "v-one", "v-three"),
    *("v-noise", "v-sizes", "v-patches", "quick-look"),
)
"""Files with a CPU part and a GPU part, ``cpu-NAME.json`` and ``gpu-NAME.json``."""

TEXTBOOKS = ("gpu-textbook-4096", "gpu-textbook-256", "gpu-textbook-nlm")
"""Our kernels and textbook kernels, written by ``tests.gpu.bench_levels`` or ``textbook_nlm``."""

LIMITS = (
    *("gpu-limits-before", "gpu-limits", "gpu-waiting", "gpus-waiting", "cpu-waiting"),
    *("gpus-shared", "cpu-turns-before", "cpu-turns"),
)
"""Files of which ``limits_page.py`` makes a page of its own."""

SEVERAL = "h200-one-to-four-gpus-2026-11-21"
"""A run on several GPUs, as text: used where no JSON file has such rows."""

C_PEER, SIZED_C = "C -O2", "C -O2, size known"
"""The libraries whose rows are the same loops in C: for masks of any size, the yardstick of
*serial*, and for one size."""

SIZED = "serial-against-c-2026-11-28"
"""A run of ``serial_against_c.py`` with both programs in C, as text."""

NOTHING = Report({}, Plan(sweeps=()), ())
SIZE = (4096, 4096)


def reports(*names: str) -> Report:
    """Return the existing ones of some files, as one report."""
    paths = (FOLDER / f"{name}.json" for name in names)
    found = [path for path in paths if path.exists()]
    return merge([NOTHING, *(_loaded(path, path.stat().st_mtime_ns) for path in found)])


@functools.cache  # a page asks for each of them some twenty times
def _loaded(path: Path, changed: int) -> Report:
    return load(path)


def experiment(name: str) -> Report:
    return reports(f"cpu-{name}", f"gpu-{name}")


def bench_files() -> list[Path]:
    """Return the files of the bench, without those of other programs."""
    return [
        path for path in sorted(FOLDER.glob("*.json")) if path.stem not in (*TEXTBOOKS, *LIMITS)
    ]
