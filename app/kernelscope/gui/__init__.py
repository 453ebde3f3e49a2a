"""The window; the only package that imports Qt and PyQtGraph."""

from __future__ import annotations

from pathlib import Path


def run(path: Path | None = None, *more: Path) -> int:
    """Open the window on these files, or on a sample picture, and return the exit status."""
    from kernelscope.gui.starting import show_start

    screen = show_start(path)
    from kernelscope.gui.application import run as run_application

    return run_application(path, *more, screen=screen)
