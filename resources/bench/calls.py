"""The cost of a call of the library: next to OpenCV, for the first call, and for an error.

    python resources/bench/calls.py

Each line is the least of many times, taken in turns, in microseconds: other programs on the machine
make some longer, none shorter. OpenCV uses as many threads as the library. Results are compared
first. Fresh processes find compiled code in the cache; theirs are seconds of processor time.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import cv2
import numpy as np

import kernelscope as ks
from kernelscope.base import machine
from kernelscope.base.parallel import core_count

SIZES = (64, 256, 1024)
ROUNDS = 400


class Case(NamedTuple):
    """A call, and OpenCV's way to its result."""

    name: str
    call: Callable[[Any], Any]
    theirs: Callable[[Any], Any]
    differ: int = 0


CASES = (
    Case("mean 3", lambda a: ks.mean(a), lambda a: cv2.blur(a, (3, 3), borderType=2)),
    Case(
        "median 3",
        lambda a: ks.median(a, border="nearest"),
        lambda a: cv2.medianBlur(a, 3),
    ),
    Case(
        "median 5",
        lambda a: ks.median(a, size=5, border="nearest"),
        lambda a: cv2.medianBlur(a, 5),
    ),
    Case(
        "weighted mean 5",
        lambda a: ks.weighted_mean(a, size=5),
        lambda a: cv2.GaussianBlur(a, (5, 5), 0, borderType=2),
        1,
    ),
    Case("negative", lambda a: ks.negative(a), cv2.bitwise_not),
)

FRESH = {
    "import": "import kernelscope",
    "import, with a function": "import kernelscope as ks; ks.median",
    "Numba alone": "import numba",
    "first call": "import numpy, kernelscope; kernelscope.median(numpy.zeros((64, 64), 'u1'))",
}
ERRORS = {
    "misspelt filter": ("apply", "medan", "a.png", "b.png"),
    "value out of range": ("apply", "median", "--size", "4", "a.png", "b.png"),
    "missing file": ("apply", "median", "a.png", "b.png"),
}


def seconds(function: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    function()
    return time.perf_counter() - begun


def compare(case: Case, size: int) -> None:
    image = np.random.default_rng(1).integers(0, 256, (size, size), np.uint8)
    difference = np.abs(case.call(image).astype(int) - case.theirs(image))
    assert difference.max() <= case.differ, case.name
    ours = theirs = np.inf
    for _ in range(ROUNDS):
        ours = min(ours, seconds(lambda: case.call(image)))
        theirs = min(theirs, seconds(lambda: case.theirs(image)))
    print(f"{case.name:18}{size:5}²{ours * 1e6:10.1f}{theirs * 1e6:10.1f}{ours / theirs:8.2f}")


def fresh(arguments: list[str]) -> float:
    """Return the least processor time of a new process that runs Python."""
    best = np.inf
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], check=False, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return best


def main() -> None:
    cv2.setNumThreads(core_count())
    print(f"{machine.cpu_name()}, {core_count()} cores, OpenCV {cv2.__version__}")
    print(f"{'':24}{'library':>10}{'OpenCV':>10}{'ratio':>8}")
    for case in CASES:
        for size in SIZES:
            compare(case, size)
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    print("Processor time of a fresh process, in seconds")
    for name, code in FRESH.items():
        print(f"{name:24}{fresh(['-c', code]):10.2f}")
    for name, line in ERRORS.items():
        print(f"{name:24}{fresh(['-m', 'kernelscope', *line]):10.2f}")


if __name__ == "__main__":
    main()
