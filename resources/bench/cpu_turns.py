"""Level parallel against OpenCV in turns, for every filter and size that both have.

    python resources/bench/cpu_turns.py [--only mean "median 31"] [--repeat 11] [--out FILE]
    PYTHONPATH=OTHER/app python resources/bench/cpu_turns.py --out before.json

8-bit noise, 4096×4096; non-local means on a part, with 21×21 candidates and patches of 7×7; and of
a volume, for which OpenCV has none. ``--content photograph`` instead of noise, on which the medians
of OpenCV take longer. A line has the least and the median of the times in ms, first of the clock
and then of the processor, which is that of all threads: it holds beside other work on the same
cores, where the clock does not. Compiling and the first run are not counted. The last two numbers
are times of OpenCV in times of ours. With a PYTHONPATH the program is another checkout's.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

if "PYTHONPATH" not in os.environ:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "app"))

from kernelscope import filters
from kernelscope.backends.cpu import CpuBackend
from kernelscope.base.machine import cpu_name
from kernelscope.base.parallel import core_count
from kernelscope.bench import peers
from kernelscope.bench.data import HEAD_SIGMA, Content, Data
from kernelscope.bench.presets import weights
from kernelscope.engine.context import RunContext
from kernelscope.engine.request import Request
from kernelscope.schema.borders import Border
from kernelscope.schema.levels import PARALLEL

OURS, THEIRS = "parallel", "OpenCV"

REAL = (130, 157, 189)
"""Shape of source V's scan."""

NLM_SIDE = 1024
"""Side of the picture for non-local means."""

VOLUME_TURNS = 3

Values = dict[str, Any]

CASES: list[tuple[str, Values]] = [
    *(("mean", {"size": side}) for side in (3, 5, 7, 9, 11, 13, 15, 21, 31)),
    *(("weighted_mean", {"size": side}) for side in (3, 5, 7, 9, 11, 13, 15)),
    *(("median", {"size": side}) for side in (3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 25, 31)),
    *(("mask", {"mask": weights(side), "divisor": "one"}) for side in (3, 5, 7, 9, 15)),
    *(("sobel", {"form": form}) for form in ("sum", "magnitude", "directions")),
    *(("laplace", {"form": form, "negative": "absolute"}) for form in ("4", "8", "5x5")),
    ("greyscale", {}),
    ("nlm", {"weights": "uniform", "patch": 7, "search_radius": 10, "filter_sigma": 0.02}),
    ("mri_nlm", {"search_radius": 5, "patch_radius": 1, "noise": "rician"}),
    ("mri_nlm", {"search_radius": 3, "patch_radius": 1, "noise": "gaussian"}),
]

BORDERS = {"median": Border.NEAREST, "nlm": Border.MIRROR}
"""Those of OpenCV; all others filter with `Border.REFLECT`."""

Turn = Callable[[], Any]


def name_of(filter_id: str, chosen: Values) -> str:
    """Return ``median 31`` or ``mask 9``."""
    texts = (len(value) if isinstance(value, tuple) else value for value in chosen.values())
    return " ".join([filter_id, *map(str, texts)])


def data_of(filter_id: str, side: int, content: str) -> Data:
    """Return the picture or the volume to filter."""
    if filter_id == "mri_nlm":
        return Data(Content.HEAD, REAL)
    if filter_id == "greyscale":
        return Data(Content.NOISE, (side, side), 3)
    side = min(side, NLM_SIDE) if filter_id == "nlm" else side
    return Data(Content(content), (side, side))


def turns_of(filter_id: str, chosen: Values, data: Data, backend: CpuBackend) -> dict[str, Turn]:
    """Return a run of level parallel, and a call of OpenCV if it has such a filter; both warm."""
    border = BORDERS.get(filter_id, Border.REFLECT)
    given = {"sigma_from": "given", "sigma": (HEAD_SIGMA,)} if filter_id == "mri_nlm" else {}
    source: Any = data.make()
    request = Request.create(source, filter_id, {**given, **chosen}, border=border)
    turns: dict[str, Turn] = {OURS: lambda: backend.run(request, PARALLEL, RunContext())}
    if not given:
        values = filters.get(filter_id).validate(chosen)
        found = peers.counterpart(THEIRS, filter_id, source.pixels, values, border)
        if found is not None:
            turns[THEIRS] = found.result
    for turn in turns.values():
        turn()
    return turns


def clocked(turn: Turn) -> tuple[float, float]:
    """Return the seconds of a turn, by the clock and of the processor."""
    clock, busy = time.perf_counter(), time.process_time()
    turn()
    return time.perf_counter() - clock, time.process_time() - busy


def in_turns(turns: dict[str, Turn], repeat: int) -> dict[str, dict[str, list[float]]]:
    """Return the seconds of all turns, by the clock and of the processor, by contestant."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in turns}
    for _ in range(repeat):
        for name, turn in turns.items():
            times[name].append(clocked(turn))
    return {
        name: {"clock": [clock for clock, _ in each], "processor": [busy for _, busy in each]}
        for name, each in times.items()
    }


def line(seconds: dict[str, dict[str, list[float]]]) -> str:
    """Return the times of a case, and the ratios."""
    parts = [
        name.rjust(10)
        + "".join(
            f"{1e3 * min(each):9.1f} {1e3 * statistics.median(each):9.1f}"
            for each in times.values()
        )
        for name, times in seconds.items()
    ]
    if THEIRS in seconds:
        for kind, ours in seconds[OURS].items():
            ratio = statistics.median(seconds[THEIRS][kind]) / statistics.median(ours)
            parts.append(f"{ratio:6.2f}")
    return "".join(parts)


def measure(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Measure each case that was chosen, and print its line."""
    backend = CpuBackend()
    for filter_id, chosen in CASES:
        name = name_of(filter_id, chosen)
        if options.only and not any(f"{name} ".startswith(f"{each} ") for each in options.only):
            continue
        print(name.ljust(30), end="", flush=True)
        data = data_of(filter_id, options.side, options.content)
        turns = turns_of(filter_id, chosen, data, backend)
        seconds = in_turns(turns, VOLUME_TURNS if filter_id == "mri_nlm" else options.repeat)
        print(line(seconds), flush=True)
        content, shape = str(data.content), data.shape
        yield {"case": name, "content": content, "shape": shape, "seconds": seconds}
    backend.close()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description="Times level parallel and OpenCV in turns.", allow_abbrev=False
    )
    parser.add_argument("--only", nargs="+", metavar="CASE", default=())
    parser.add_argument("--side", type=int, default=4096)
    parser.add_argument("--repeat", type=int, default=11)
    parser.add_argument("--content", default="noise", choices=("noise", "photograph"))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    measured = list(measure(options))
    if options.out:
        machine = {
            "CPU": f"{cpu_name()}, {core_count()} cores",
            "Date": datetime.now(UTC).isoformat(timespec="minutes"),
            "OpenCV": peers.versions().get(THEIRS, ""),
        }
        options.out.write_text(json.dumps({"machine": machine, "rows": measured}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
