"""The pictures that come with the program."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kernelscope.base.paths import RESOURCES


@dataclass(frozen=True)
class Sample:
    path: Path  # where it is
    caption: str  # description of the picture, for menus
    truth: Path | None = None  # the same picture without its noise


_CAMERA = RESOURCES / "camera.bmp"

SAMPLES = (
    Sample(RESOURCES / "camera-salt-pepper.png", "Photographer, salt-and-pepper noise", _CAMERA),
    Sample(RESOURCES / "camera-gaussian.png", "Photographer, Gaussian noise", _CAMERA),
    Sample(_CAMERA, "Photographer, grey"),
    Sample(RESOURCES / "coffee.png", "Cup of coffee, colour"),
)
"""Samples in the menu; the window opens with the first."""


def truth_of(path: Path | None) -> Path | None:
    """Return the picture without noise to a sample at `path`; None for other pictures."""
    return next((each.truth for each in SAMPLES if each.path == path), None)
