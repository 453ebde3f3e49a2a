"""How the files of a batch are read and written."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Handling:
    """How the files of a batch are read and written."""

    nan: float | None = None
    """Replaces NaN; without it, files with NaN fail."""
    as_float: bool = False
    """Volumes are not rounded to the type of their file."""
    lossy: bool = False
    """Write even if a format loses something."""
    quality: int | None = None
    """That of a JPEG."""

    @property
    def signature(self) -> str:
        """What decides results beside the recipe; empty if it is all as usual."""
        values = {"nan": self.nan, "float": self.as_float or None, "quality": self.quality}
        return ", ".join(f"{name} {each}" for name, each in values.items() if each is not None)


AS_USUAL = Handling()
