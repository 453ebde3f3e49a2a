"""Compile the filters' CPU code for the package, so that nobody waits for a first run.

    python .ci/prebuild.py                              # into app/kernelscope/prebuilt, for wheels
    python .ci/prebuild.py --out FOLDER --only median   # somewhere else, some filters
    python .ci/prebuild.py --out FOLDER --usual         # bytes and usual values only

Every filter is planned at its fastest level for each type of samples, for the values that its panel
offers, and for its borders; each specialisation of a kernel is compiled once, for processors of
x86-64-v3, on all cores. The folder is used by the same versions of the sources, of Numba and of
Python; all others compile as before. A kernel takes 20 to 300 KB.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
SIDE = 40
VARIANTS = 9
DTYPES = ("uint8", "uint16", "float32")
SIZES = (15, 31)


def requests(  # noqa: C901 - nested loops over what is compiled
    filter_id: str, usual_only: bool, device: str = "cpu", side: int = SIDE
) -> Iterator[Any]:
    """Yield small requests that together need the specialisations of a filter."""
    import numpy as np

    from kernelscope import filters
    from kernelscope.base.errors import AppError
    from kernelscope.engine.request import Request
    from kernelscope.library import arrays
    from kernelscope.schema.devices import Device
    from kernelscope.schema.parameters import MaskParameter
    from kernelscope.schema.samples import Kind

    spec = filters.get(filter_id)
    random = np.random.default_rng(0)
    sources: list[Any] = []
    if spec.kind is Kind.VOLUME:
        volume = (random.random((12, 12, 12)) * 200).astype(np.float32)
        counts = (1,) if usual_only else (1, 2, 3)
        sources += [arrays.scan([("a", volume)] * count) for count in counts]
    else:
        for dtype in DTYPES[:1] if usual_only else DTYPES:
            white = 1 if dtype == "float32" else np.iinfo(dtype).max
            for shape in ((side, side), (side, side, 3)):
                pixels = (random.random(shape) * white).astype(dtype)
                sources.append(arrays.picture(pixels, "a"))
    usual = spec.defaults()
    settings: list[dict[str, Any]] = [{}]
    if any(parameter.name == "size" for parameter in spec.parameters):
        settings += [{"size": size} for size in SIZES]
    for parameter in () if usual_only else spec.parameters:
        for value in parameter.variants(usual[parameter.name], VARIANTS):
            settings.append({parameter.name: value})
        # The larger the weights of a mask, the wider the type of its sums.
        if device == "cpu" and isinstance(parameter, MaskParameter):
            for preset in parameter.presets:
                settings.append({parameter.name: preset.fill(parameter.maximum)})
    for source in sources:
        for border in spec.borders[:1] if usual_only else spec.borders:
            for chosen in settings if border is spec.borders[0] else settings[:1]:
                try:
                    yield Request.create(
                        source, filter_id, chosen, border=border, device=Device(device)
                    )
                except AppError:  # a value that goes with no other default, a picture too small
                    continue


def export(filter_ids: Sequence[str], out: Path, usual_only: bool) -> None:
    """Compile filters in this process."""
    import numpy as np

    from kernelscope.backends.cpu import CpuBackend
    from kernelscope.base.errors import AppError
    from kernelscope.base.jit import JitKernel
    from kernelscope.engine.context import RunContext
    from kernelscope.schema.filter import CpuPass

    seen: set[Any] = set()

    class Exporter(CpuBackend):
        """Compiles the passes of a request, and computes nothing."""

        def _compile(self, passes: Sequence[CpuPass], context: RunContext) -> None:
            for each in passes:
                if not isinstance(each.kernel, JitKernel):  # NumPy alone
                    continue
                arguments = (*each.arguments, 0, 0)
                key = each.kernel, each.kernel.types_of(*arguments)
                if key not in seen:
                    seen.add(key)
                    each.kernel.export(out, *arguments)

        def _sweep(self, sweep: CpuPass, *arguments: Any) -> None:
            for each in sweep.arguments:  # or a result would have no numbers
                if isinstance(each, np.ndarray) and each.flags.writeable:
                    each.fill(0)

    backend = Exporter(threads=1)
    for filter_id in filter_ids:
        start, before = time.process_time(), len(seen)
        for request in requests(filter_id, usual_only):
            try:
                backend.run(request, backend.levels(request.step.filter)[-1], RunContext())
            except AppError as error:
                print(f"{filter_id}: {error}", flush=True)
        seconds = time.process_time() - start
        print(f"{filter_id}: {len(seen) - before} kernels, {seconds:.1f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--usual", action="store_true", help="usual values, bytes and one volume")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT / "app"))
    from kernelscope import filters
    from kernelscope.base import jit

    if options.worker:
        export(options.only, options.out, options.usual)
        return
    chosen = options.only or [
        each for each in (*filters.discover(), *filters.in_3d()) if filters.get(each).levels("cpu")
    ]
    out = (options.out or jit.PREBUILT).resolve() / jit.portable_name()
    out.mkdir(parents=True, exist_ok=True)
    waiting, running = list(chosen), list[subprocess.Popen[bytes]]()
    with tempfile.TemporaryDirectory() as cache:
        environment = {
            **os.environ,
            "NUMBA_CPU_NAME": jit.BASELINE,
            "NUMBA_CPU_FEATURES": "",
        }
        while waiting or running:
            while waiting and len(running) < options.jobs:
                command = [sys.executable, __file__, "--worker", "--out", str(out)]
                command += ["--usual"] * options.usual
                filter_id = waiting.pop(0)
                # One each: what another process compiled could be run, but not exported.
                environment["NUMBA_CACHE_DIR"] = str(Path(cache, filter_id))
                running.append(subprocess.Popen([*command, "--only", filter_id], env=environment))
            finished = [process for process in running if process.poll() is not None]
            if any(process.returncode for process in finished):
                raise SystemExit("a filter was not compiled")
            running = [process for process in running if process not in finished]
            time.sleep(0.1)
    files = list(out.iterdir())
    size = sum(file.stat().st_size for file in files)
    print(f"{out}: {len(files)} kernels, {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
