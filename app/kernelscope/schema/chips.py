"""Settings in a few characters each, for captions and thumbnails."""

from __future__ import annotations

from typing import NamedTuple


class Chip(NamedTuple):
    name: str
    """Of the parameter; equal names on two runs are the same setting."""
    text: str
    """``σ 0.0222``."""
    usual: bool
    """It has its default, and may be left out."""
