"""The pictures that come with the program."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kernelscope.paths import RESOURCES


@dataclass(frozen=True)
class Sample:
    """A picture that comes with the program.

    Attributes
    ----------
    path : Path
        Where it is.
    caption : str
        Description of the picture, for menus.
    """

    path: Path
    caption: str


SAMPLES = (
    Sample(RESOURCES / "camera-salt-pepper.png", "Photographer, salt-and-pepper noise"),
    Sample(RESOURCES / "camera-gaussian.png", "Photographer, Gaussian noise"),
    Sample(RESOURCES / "camera.bmp", "Photographer, grey"),
    Sample(RESOURCES / "coffee.png", "Cup of coffee, colour"),
)
"""Samples in the menu; the window opens with the first."""
