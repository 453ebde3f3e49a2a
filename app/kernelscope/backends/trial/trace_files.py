"""The trace of an edited kernel as files: JSON and arrays, everything in them checked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernelscope.backends.trial.protocol import write_record
from kernelscope.base import json_fields
from kernelscope.traffic.trace import ENTRY, RECORD, Scene, Trace

_SCENE, _ARRAYS = "trace.json", "trace.npz"
_MOST_BYTES = 64 << 20
_NAMES = {"records": RECORD, "entries": ENTRY, "footprint": np.dtype(np.int64)}


def write_trace(folder: Path, trace: Trace, thread: int) -> None:
    rows = None if trace.rows is None else (trace.rows.start, trace.rows.stop)
    flags = bool(trace.truncated), bool(trace.whole)
    data = _TraceData(trace.scene, trace.number, trace.barriers, *flags, rows, thread)
    write_record(folder / _SCENE, data)
    np.savez(folder / _ARRAYS, **{name: getattr(trace, name) for name in _NAMES})


@dataclass(frozen=True)
class _TraceData:
    scene: Scene
    number: int
    barriers: int
    truncated: bool
    whole: bool
    rows: tuple[int, int] | None
    thread: int


def read_trace(folder: Path) -> tuple[Trace, int]:
    """Return the trace in a folder, and the thread of which it is.

    Raises `InvalidJson` if it is not there or damaged: a wild write may have hit it.
    """
    content = json_fields.read(folder / _SCENE, _MOST_BYTES)
    data = content.record(_TraceData)
    scene, arrays = data.scene, _arrays(folder, content)
    if scene.launch > scene.launches:
        content["scene"]["launch"].refuse("there are fewer launches")
    for name, most in (("number", scene.blocks), ("thread", scene.threads)):
        content[name].whole(0, most - 1)
    if int(arrays["records"]["array"].max(initial=0)) >= len(scene.arrays):
        content.refuse("a record is of no array")
    if arrays["footprint"].shape != (len(scene.arrays), 2):
        content.refuse("the footprint is not that of the arrays")
    trace = Trace(
        scene,
        data.number,
        arrays["records"],
        arrays["entries"],
        arrays["footprint"],
        data.barriers,
        data.truncated,
        data.whole,
        None if data.rows is None else range(*data.rows),
    )
    return trace, data.thread


def _arrays(folder: Path, content: json_fields.Field) -> dict[str, Any]:
    try:
        with np.load(folder / _ARRAYS, allow_pickle=False) as file:
            arrays = {name: file[name] for name in _NAMES}
    except (OSError, ValueError, EOFError, KeyError):
        content.refuse("its arrays are damaged")
    if any(arrays[name].dtype != dtype for name, dtype in _NAMES.items()):
        content.refuse("its arrays are of other types")
    return arrays
