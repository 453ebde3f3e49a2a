"""Rows that nobody measured."""

from __future__ import annotations

from typing import Any

from kernelscope.bench.rows import Row


def row(**changes: Any) -> Row:
    """Return a row of the mean 3×3 by the serial CPU, without times, with some `changes`."""
    size = changes.get("asked", changes.get("shape", (16, 16)))
    values: dict[str, Any] = {
        "label": "Mean, mask size 3",
        "filter": "mean",
        "parameters": {"size": "3"},
        "border": "reflect",
        "content": "noise",
        "channels": 1,
        "asked": size,
        "shape": size,
        "device": "cpu",
        "level": "serial",
    }
    return Row(**values | changes)
