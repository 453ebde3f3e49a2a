"""The trace of an edited kernel as files: JSON and arrays, everything in them checked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from kernelscope.base import json_fields
from kernelscope.traffic.trace import ENTRY, RECORD, Array, MemorySpace, Scene, SourceLine, Trace

_SCENE, _ARRAYS = "trace.json", "trace.npz"
_MOST_BYTES = 64 << 20
_MOST = 1 << 53
_PLAIN = ("kernel", "level", "level_name", "notice")
_NAMES = {"records": RECORD, "entries": ENTRY, "footprint": np.dtype(np.int64)}


def write_trace(folder: Path, trace: Trace, thread: int) -> None:
    scene = trace.scene
    content = {
        **{name: getattr(scene, name) for name in _PLAIN},
        "grid": scene.grid,
        "block": scene.block,
        "arrays": [
            {
                "name": each.name,
                "space": int(each.space),
                "bytes": each.bytes,
                "shape": each.shape,
                "item": each.item,
                "origin": each.origin,
            }
            for each in scene.arrays
        ],
        "sites": {str(site): places for site, places in scene.sites.items()},
        "output_shape": scene.output_shape,
        "operations": scene.operations,
        "launch": scene.launch,
        "launches": scene.launches,
        "number": trace.number,
        "barriers": trace.barriers,
        "truncated": bool(trace.truncated),
        "whole": bool(trace.whole),
        "rows": [] if trace.rows is None else [trace.rows.start, trace.rows.stop],
        "thread": thread,
    }
    (folder / _SCENE).write_text(json.dumps(content), encoding="utf-8")
    np.savez(folder / _ARRAYS, **{name: getattr(trace, name) for name in _NAMES})


def read_trace(folder: Path) -> tuple[Trace, int]:
    """Return the trace in a folder, and the thread of which it is.

    Raises `InvalidJson` if it is not there or damaged: a wild write may have hit it.
    """
    content = json_fields.read(folder / _SCENE, _MOST_BYTES)
    launches = content["launches"].whole(1, _MOST)
    scene = Scene(
        **{name: content[name].text() for name in _PLAIN},
        grid=_three(content["grid"]),
        block=_three(content["block"]),
        arrays=tuple(map(_array, content["arrays"].elements())),
        sites={_site(each, site): _places(each) for site, each in content["sites"].fields()},
        output_shape=tuple(each.whole(1, _MOST) for each in content["output_shape"].elements()),
        operations=content["operations"].number(0, 1e18),
        launch=content["launch"].whole(1, launches),
        launches=launches,
    )
    arrays = _arrays(folder, content)
    if int(arrays["records"]["array"].max(initial=0)) >= len(scene.arrays):
        content.refuse("a record is of no array")
    if arrays["footprint"].shape != (len(scene.arrays), 2):
        content.refuse("the footprint is not that of the arrays")
    trace = Trace(
        scene,
        content["number"].whole(0, scene.blocks - 1),
        arrays["records"],
        arrays["entries"],
        arrays["footprint"],
        content["barriers"].whole(0, _MOST),
        content["truncated"].flag(),
        content["whole"].flag(),
        range(*rows) if (rows := [n.whole(0, _MOST) for n in content["rows"].elements()]) else None,
    )
    return trace, content["thread"].whole(0, scene.threads - 1)


def _arrays(folder: Path, content: json_fields.Field) -> dict[str, Any]:
    try:
        with np.load(folder / _ARRAYS, allow_pickle=False) as file:
            arrays = {name: file[name] for name in _NAMES}
    except (OSError, ValueError, EOFError, KeyError):
        content.refuse("its arrays are damaged")
    if any(arrays[name].dtype != dtype for name, dtype in _NAMES.items()):
        content.refuse("its arrays are of other types")
    return arrays


def _array(content: json_fields.Field) -> Array:
    return Array(
        content["name"].text(),
        MemorySpace(content["space"].whole(0, len(MemorySpace) - 1)),
        content["bytes"].whole(0, _MOST),
        tuple(each.whole(1, _MOST) for each in content["shape"].elements()),
        content["item"].whole(1, 16),
        None if content["origin"].value is None else content["origin"].whole(0, _MOST),
    )


def _site(content: json_fields.Field, name: str) -> int:
    if not name.isdecimal():
        content.refuse("an instruction has no number")
    return int(name)


def _places(content: json_fields.Field) -> tuple[SourceLine, ...]:
    pairs = (each.elements(2) for each in content.elements())
    return tuple(SourceLine(file.text(), line.whole(0, 1 << 31)) for file, line in pairs)


def _three(content: json_fields.Field) -> tuple[int, int, int]:
    columns, rows, slices = (each.whole(1, _MOST) for each in content.elements(3))
    return columns, rows, slices
