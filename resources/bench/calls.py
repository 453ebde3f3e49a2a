"""The cost of a call of the library: next to OpenCV and SciPy, for the first call, for an error.

    python resources/bench/calls.py                      all of it
    python resources/bench/calls.py --sizes 64 1024 4096 --filters gaussian bilateral

Each line is the least of many times, in microseconds: other programs on the machine make some
longer, none shorter. Beside it is the least processor time of a call, of all threads together,
which other programs do not lengthen. OpenCV uses as many threads as the library; they take turns,
each as often first. SciPy comes after them: it takes up to a thousand times as long, leaves nothing
of the picture in the caches, and whoever came next would pay for that. Results are compared first.
Fresh processes find compiled code in the cache; theirs are seconds of processor time.
"""

from __future__ import annotations

import argparse
import functools
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import cv2
import numpy as np
from scipy import ndimage

import kernelscope as ks
from kernelscope.base import machine
from kernelscope.base.parallel import core_count

SIZES = (64, 256, 1024)
ROUNDS = 1000
SETTLED = 20  # calls until the code is there, and the number of threads is known
SECONDS = 4.0  # that the calls of a line may take, though each is made five times


class Case(NamedTuple):
    """A call, and the ways of OpenCV and SciPy to its result."""

    name: str
    call: Callable[[Any], Any]
    theirs: Callable[[Any], Any]
    scipy: Callable[[Any], Any] | None = None
    differ: int = 0


_SQUARE, _REFLECT = np.ones((9, 9), np.uint8), cv2.BORDER_REFLECT

CASES = (
    Case(
        "mean 3",
        lambda a: ks.mean(a),
        lambda a: cv2.blur(a, (3, 3), borderType=2),
        lambda a: ndimage.uniform_filter(a, 3),
    ),
    Case(
        "median 3",
        lambda a: ks.median(a, border="nearest"),
        lambda a: cv2.medianBlur(a, 3),
        lambda a: ndimage.median_filter(a, 3, mode="nearest"),
    ),
    Case(
        "median 5",
        lambda a: ks.median(a, size=5, border="nearest"),
        lambda a: cv2.medianBlur(a, 5),
        lambda a: ndimage.median_filter(a, 5, mode="nearest"),
    ),
    Case(
        "weighted mean 5",
        lambda a: ks.weighted_mean(a, size=5),
        lambda a: cv2.GaussianBlur(a, (5, 5), 0, borderType=2),
        differ=1,
    ),
    Case("negative", lambda a: ks.negative(a), cv2.bitwise_not, np.invert),
    Case(
        "gaussian 1",
        lambda a: ks.gaussian(a, sigma=1),
        lambda a: cv2.GaussianBlur(a, (9, 9), 1, borderType=_REFLECT),
        lambda a: ndimage.gaussian_filter(a, 1),
        1,
    ),
    Case(
        "gaussian 4",
        lambda a: ks.gaussian(a, sigma=4),
        lambda a: cv2.GaussianBlur(a, (33, 33), 4, borderType=_REFLECT),
        lambda a: ndimage.gaussian_filter(a, 4),
        2,
    ),
    Case(  # OpenCV has the cells of a disk alone, 13 of 25, and so other results
        "bilateral 5",
        lambda a: ks.bilateral(a),
        lambda a: cv2.bilateralFilter(a, 5, 25.5, 1.5, borderType=_REFLECT),
        differ=255,
    ),
    Case(
        "minimum 9",
        lambda a: ks.minimum(a, size=9),
        lambda a: cv2.erode(a, _SQUARE, borderType=_REFLECT),
        lambda a: ndimage.minimum_filter(a, 9),
    ),
    Case(
        "maximum 9",
        lambda a: ks.maximum(a, size=9),
        lambda a: cv2.dilate(a, _SQUARE, borderType=_REFLECT),
        lambda a: ndimage.maximum_filter(a, 9),
    ),
    Case(
        "opening 9",
        lambda a: ks.morphology(a, size=9),
        lambda a: cv2.morphologyEx(a, cv2.MORPH_OPEN, _SQUARE, borderType=_REFLECT),
        lambda a: ndimage.grey_opening(a, 9),
    ),
)

FRESH = {
    "import": "import kernelscope",
    "import, with a function": "import kernelscope as ks; ks.median",
    "Numba alone": "import numba",
    "first call": "import numpy, kernelscope; kernelscope.median(numpy.zeros((64, 64), 'u1'))",
}
ERRORS = {
    "misspelt filter": ("apply", "medan", "a.png", "b.png"),
    "value out of range": ("apply", "median", "--size", "99", "a.png", "b.png"),
    "missing file": ("apply", "median", "a.png", "b.png"),
}


def least(call: Callable[[], Any], best: tuple[float, float]) -> tuple[float, float]:
    """Return the least time and the least processor time, in seconds, with those of a new call."""
    spent, begun = time.process_time(), time.perf_counter()
    call()
    taken = time.perf_counter() - begun
    return min(best[0], taken), min(best[1], time.process_time() - spent)


def in_turns(calls: list[Callable[[], Any]]) -> list[tuple[float, float]]:
    best = [(np.inf, np.inf)] * len(calls)
    begun = time.perf_counter()
    for number in range(ROUNDS):
        if number >= 5 and time.perf_counter() - begun > SECONDS:
            break
        for i in sorted(range(len(calls)), reverse=number % 2 == 1):
            best[i] = least(calls[i], best[i])
    return best


def compare(case: Case, size: int) -> None:
    image = np.random.default_rng(1).integers(0, 256, (size, size), np.uint8)
    for _ in range(SETTLED):
        made = case.call(image).astype(int)
    assert np.abs(made - case.theirs(image)).max() <= case.differ, case.name
    best = in_turns([functools.partial(each, image) for each in (case.call, case.theirs)])
    if case.scipy:
        best += in_turns([functools.partial(case.scipy, image)])
    row = "".join(f"{taken * 1e6:12.1f}{spent * 1e6:11.1f}" for taken, spent in best)
    print(f"{case.name:18}{size:5}²{row}   {best[0][0] / best[1][0]:.2f}", flush=True)


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
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    parser.add_argument("--filters", nargs="+", help="first words of cases; without, all")
    options = parser.parse_args()
    cv2.setNumThreads(core_count())
    print(f"{machine.cpu_name()}, {core_count()} cores, OpenCV {cv2.__version__}")
    head = "".join(f"{name:>12}{'processor':>11}" for name in ("library", "OpenCV", "SciPy"))
    print(f"{'':24}{head}   library / OpenCV")
    for case in CASES:
        for size in options.sizes:
            if not options.filters or case.name.split()[0] in options.filters:
                compare(case, size)
    if options.filters:
        return
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    print("Processor time of a fresh process, in seconds")
    for name, code in FRESH.items():
        print(f"{name:24}{fresh(['-c', code]):10.2f}")
    for name, line in ERRORS.items():
        print(f"{name:24}{fresh(['-m', 'kernelscope', *line]):10.2f}")


if __name__ == "__main__":
    main()
