"""A volume larger than memory, filtered in blocks, beside plain copying of its file.

    python resources/bench/lazy.py --gib 16 --memory 2G --folder /var/tmp

Makes a BigTIFF of 16-bit noise, copies it with `cp`, and filters it with `kernelscope apply`,
each in a process of its own. A time is that of the process on the clock, until the result is on
the disk. The pages of the source are dropped from the cache before each; the rest of the cache is
as the system keeps it. Three slices of the result are compared with those that are filtered in
memory. All files are deleted in the end; the folder needs room for three of them.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tifffile

import kernelscope as ks
from kernelscope.base import machine

SIDE = 2048
SLICE_BYTES = SIDE * SIDE * 2
PROGRAM = "import sys; from kernelscope.cli.main import main; sys.exit(main(sys.argv[1:]))"


def make(path: Path, depth: int) -> None:
    """Write a volume of noise, of which every slice differs from its neighbours."""
    noise = np.random.default_rng(1).integers(0, 4096, SIDE * SIDE + depth, np.uint16)
    with tifffile.TiffWriter(path, bigtiff=True) as writer:
        slices = (noise[z : z + SIDE * SIDE].reshape(SIDE, SIDE) for z in range(depth))
        shape = (depth, SIDE, SIDE)
        writer.write(slices, shape=shape, dtype=np.uint16, photometric="minisblack")
    flush(path)


def flush(path: Path) -> None:
    """Wait until a file is on the disk."""
    with path.open("rb+") as handle:
        os.fsync(handle.fileno())


def forget(path: Path) -> None:
    """Drop the pages of a file from the cache."""
    with path.open("rb") as handle:
        os.posix_fadvise(handle.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def timed(source: Path, action: Callable[[], None]) -> dict[str, Any]:
    """Return seconds and MB of the source a second, with the load of the machine before."""
    forget(source)
    load = os.getloadavg()[0]
    start = time.perf_counter()
    action()
    seconds = time.perf_counter() - start
    rate = source.stat().st_size / 1e6 / seconds
    return {"seconds": round(seconds, 1), "MB/s": round(rate, 1), "load before": round(load, 2)}


def filtered(source: Path, target: Path, step: list[str], memory: str) -> dict[str, Any]:
    """Filter in a process; return its figures and the lines that it printed."""
    name, *options = step
    command = [name, str(source), str(target), *options, "--memory", memory, "--device", "cpu"]
    lines = list[str]()

    def run() -> None:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, "apply", *command],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        lines.extend(line.replace(str(target), target.name) for line in done.stdout.splitlines())

    found = timed(source, run)
    peak = re.search(r"at most (\d+) MiB", lines[-1])
    return {**found, "peak MiB": int(peak[1]) if peak else None, "printed": lines}


def same(source: Path, target: Path, size: int, depth: int) -> bool:
    """Return whether three slices have the samples of a filter in memory.

    A volume's white is its brightest voxel, which any slice of this size holds.
    """
    with tifffile.TiffFile(source) as before, tifffile.TiffFile(target) as after:
        pages = [
            (before.series[0].pages[z].asarray(), after.series[0].pages[z].asarray())
            for z in (0, depth // 2, depth - 1)
        ]
    return all(np.array_equal(ks.mean(a[None], size=size, axis="z")[0], b) for a, b in pages)


def measure(gib: float, memory: str, size: int, folder: Path) -> dict[str, Any]:
    """Return the report of copying and filtering one volume."""
    depth = max(3, round(gib * 2**30 / SLICE_BYTES))
    source, copy, target = (folder / f"{name}.tif" for name in ("source", "copy", "result"))
    make(source, depth)

    def copied() -> None:
        subprocess.run(["cp", str(source), str(copy)], check=True)
        flush(copy)

    report: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%d"),
        "machine": machine.cpu_name(),
        "cores": os.cpu_count(),
        "voxels": [depth, SIDE, SIDE],
        "bytes": source.stat().st_size,
        "memory": memory,
    }
    report["cp"] = timed(source, copied)
    copy.unlink()
    print(report, flush=True)
    step = ["mean", "--size", str(size)]
    report["filter"] = {"step": " ".join(step), **filtered(source, target, step, memory)}
    report["same as in memory"] = same(source, target, size, depth)
    report["times of cp"] = round(report["filter"]["seconds"] / report["cp"]["seconds"], 2)
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--gib", type=float, default=16)
    parser.add_argument("--memory", default="2G")
    parser.add_argument("--size", type=int, default=5, help="side of the mean's mask")
    parser.add_argument(
        "--folder", type=Path, help="place of the files (default: that of the system)"
    )
    parser.add_argument("--json", type=Path, help="file for the report")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="kernelscope-lazy-", dir=arguments.folder))
    try:
        report = measure(arguments.gib, arguments.memory, arguments.size, folder)
    finally:
        shutil.rmtree(folder)
    text = json.dumps(report, indent=2)
    print(text)
    if arguments.json:
        arguments.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
