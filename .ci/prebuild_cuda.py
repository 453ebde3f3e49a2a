"""Compile for the package those CUDA kernels that take long: nobody waits for them on a first run.

    python .ci/prebuild_cuda.py                         # into app/kernelscope/prebuilt, for wheels
    python .ci/prebuild_cuda.py --out FOLDER --only median --usual --architectures sm_90

Every filter is planned at its fastest level as `prebuild.py` does it, for a small and for a large
picture. A kernel that NVRTC compiles in less than `--least` seconds of processor time is left out:
a person does not notice it, and a file for each would make the package several times as large. The
others are compiled for each architecture, on all cores. They are used by the same sources, and by
computers whose compiler is of the same major release of CUDA.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

import prebuild

SIDES = (prebuild.SIDE, 2048)
"""Plans may differ: networks of medians for pictures that fill a card, searches for others."""

ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
"""One of each generation that the compiler of CUDA 13 knows, for computers and for servers."""

LEAST_SECONDS = 0.5
"""Processor time from which a person would notice a first run, with what else that takes."""

Specialisation: TypeAlias = tuple[str, tuple[tuple[str, str], ...]]
"""A filter, and the macros of a launch."""


def specialisations(filter_ids: Sequence[str], usual_only: bool) -> Iterator[Specialisation]:
    """Yield what the fastest level of each filter launches, each once."""
    from kernelscope import filters
    from kernelscope.backends.cuda.inspection import plans
    from kernelscope.base.errors import AppError

    seen = set()
    for filter_id in filter_ids:
        level = filters.get(filter_id).levels("gpu")[-1]
        for side in SIDES:
            for request in prebuild.requests(filter_id, usual_only, "gpu", side):
                try:
                    launches = plans(request, level)
                except AppError:  # a size that this level does not have
                    continue
                for each in launches:
                    found = filter_id, tuple(sorted(each.launch.defines.items()))
                    if found not in seen:
                        seen.add(found)
                        yield found


def compile_one(
    wanted: Specialisation, out: Path, architectures: Sequence[str], least: float
) -> tuple[str, float, int]:
    """Compile a kernel for all architectures if it takes long; return what was written."""
    from kernelscope.backends.cuda import compiler as compiling
    from kernelscope.backends.cuda.compiler import Nvrtc
    from kernelscope.backends.cuda.sources import read_source

    (filter_id, pairs), compiler, size = wanted, Nvrtc(), 0
    defines, source = dict(pairs), read_source(filter_id)
    for architecture in architectures:
        start = time.process_time()
        cubin = compiler.compile(filter_id, source, architecture, defines)
        if architecture == architectures[0]:
            seconds = time.process_time() - start
            if seconds < least:
                break
        path = compiling.packaged_path(out, filter_id, source, architecture, defines)
        compiling.package(path, cubin, compiler)
        size += len(cubin.code)
    return filter_id, seconds, size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--architectures", nargs="+", default=ARCHITECTURES)
    parser.add_argument("--least", type=float, default=LEAST_SECONDS)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--usual", action="store_true", help="usual values, bytes and one volume")
    options = parser.parse_args()
    from kernelscope import filters
    from kernelscope.backends.cuda.compiler import PACKAGED

    chosen = options.only or [
        each for each in filters.discover() if filters.get(each).levels("gpu")
    ]
    out = (options.out or PACKAGED).resolve()
    work = partial(compile_one, out=out, architectures=options.architectures, least=options.least)
    wanted = list(specialisations(chosen, options.usual))
    kept = size = 0
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        for filter_id, seconds, written in pool.imap_unordered(work, wanted):
            if written:
                kept, size = kept + 1, size + written
                print(f"{filter_id}: {seconds:.1f} s, {written / 1000:.0f} KB", flush=True)
    print(f"{out}: {kept} of {len(wanted)} kernels, {size / 1e6:.1f} MB")


sys.path.insert(0, str(prebuild.ROOT / "app"))

if __name__ == "__main__":
    main()
