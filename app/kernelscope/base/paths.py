"""Folders of the program's data files, in a checkout and when installed."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parents[1]


def _folder(name: str) -> Path:
    """Return a data folder: inside the package when installed, next to `app` in a checkout."""
    installed = _PACKAGE / name
    return installed if installed.is_dir() else _PACKAGE.parents[1] / name


RESOURCES = _folder("resources")  # sample pictures and icons
KERNELS = _folder("kernels")  # CUDA sources
