"""Opens damaged files of some kinds, within bounds of time and memory, in a process of its own.

Arguments: how many files of each, a file for the results, and the kinds. A file that makes it
crash, or takes too long inside a library, ends the process; the results say which one it was.
"""

from __future__ import annotations

import contextlib
import json
import resource
import sys
import tempfile
import time
import traceback
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from kernelscope.base.errors import AppError, OutOfMemory, SeveralVolumes
from kernelscope.files import read_image
from kernelscope.files.volumes import is_volume, read_volume
from tests.files import mutations

SECONDS = 2.0
"""Of the processor, for the first 100 MB that a file or its picture has, and for each more."""

MEMORY = 2**30
"""Bytes, beside a picture and a copy of it while it is converted."""


def open_any(path: Path) -> int:
    """Open a file as the program would, and return the bytes of its contents."""
    if not is_volume(path):
        return read_image(path).pixels.nbytes
    try:
        return read_volume(path).voxels.nbytes
    except SeveralVolumes:
        return read_volume(path, 1).voxels.nbytes


def forget_peak() -> None:
    """Let the peak of memory count from now on, where Linux can: else an earlier one covers it."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak() -> int:
    try:
        status = Path("/proc/self/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) * 1024
    except (OSError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def fault_of(path: Path) -> str:
    """Return the fault in opening or refusing a file, or nothing."""
    forget_peak()
    start, before = time.process_time(), peak()
    size = 0
    try:
        size = open_any(path)
    except OutOfMemory as error:
        return f"a small file that is said to need too much memory: {error}"
    except AppError:
        pass
    except BaseException as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{error!r:.200} at {place.filename}:{place.lineno}"
    elapsed = time.process_time() - start
    if elapsed > SECONDS * max(1, size / 1e8):
        return f"{elapsed:.1f} s"
    if peak() - before > MEMORY + 2 * size:
        return f"{(peak() - before) / 2**20:.0f} MiB"
    return ""


def main(kinds: list[str], count: int, results: Path) -> None:
    warnings.simplefilter("always")
    faults: list[str] = []
    for kind in kinds:
        faults += [f"{kind}, {fault}" for fault in faults_of(kind, count, results)]
    results.write_text(json.dumps(faults))


def faults_of(kind: str, count: int, results: Path) -> Iterator[str]:
    files = mutations.seeds(kind)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mutant"
        for number, seed in enumerate(files):  # Also loads and compiles the readers.
            path.write_bytes(seed.finish(seed.data))
            results.write_text(f"healthy file {number} of {kind}")
            try:
                open_any(path)
            except AppError as error:
                yield f"healthy file {number}: {error}"
        for number in range(count):
            path.write_bytes(mutated(kind, files, number))
            used = resource.getrusage(resource.RUSAGE_SELF)
            limit = int(used.ru_utime + used.ru_stime) + 10
            resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
            results.write_text(f"file {number} of {kind} ended the process")
            if fault := fault_of(path):
                yield f"file {number}: {fault}"


def mutated(kind: str, files: list[mutations.Seed], number: int) -> bytes:
    """Return a damaged file; the same number gives the same file."""
    return mutations.mutated(files, np.random.default_rng([zlib.crc32(kind.encode()), number]))


if __name__ == "__main__":
    main(sys.argv[3:], int(sys.argv[1]), Path(sys.argv[2]))
