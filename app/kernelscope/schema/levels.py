"""Levels: ways of computing the same result, from a plain loop to all of the hardware.

Those that are compared for every filter are described in ``resources/levels.toml``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass

from kernelscope.base.paths import RESOURCES
from kernelscope.schema.devices import Device

OTHER_COLOUR = "#9a6b48"
"""Of levels that only one filter has."""


@dataclass(frozen=True)
class Level:
    """One way of computing a filter: how much of the hardware it may use."""

    id: str
    name: str
    help: str
    exact: bool = True
    """False for a level that demonstrates a fault: its result is wrong and may differ between
    runs."""
    single: bool = False
    """Whether a level of the CPU runs on one thread."""
    why: str = ""
    """The reason for its time, for the page of the level."""
    source: str = ""
    """Where it is described."""
    access: str = "row"
    """How the threads of a warp read: ``"row"``, neighbouring samples; ``"apart"``, samples that
    lie apart; ``"local"``, through memory of each thread."""
    colour: str = OTHER_COLOUR

    def on(self, device: str) -> str:
        """Return the name behind that of a device: ``GPU shared memory``."""
        return f"{device} {self.name[0].lower()}{self.name[1:]}"


_TEXTS = (RESOURCES / "levels.toml").read_text(encoding="utf-8")
_LEVELS = {key: Level(key, **fields) for key, fields in tomllib.loads(_TEXTS).items()}

CPU_LEVELS = SERIAL, PARALLEL = _LEVELS["serial"], _LEVELS["parallel"]

SINGLE_BLOCK, GLOBAL, CONSTANT = (_LEVELS[each] for each in ("single-block", "global", "constant"))
SHARED, TEXTURE, TUNED = (_LEVELS[each] for each in ("shared", "texture", "tuned"))
GPU_LEVELS = (SINGLE_BLOCK, GLOBAL, CONSTANT, SHARED, TEXTURE, TUNED)
"""The levels that are compared for every filter; a filter may also have its own levels."""

USUAL_LEVELS: Mapping[str, tuple[Level, ...]] = {Device.CPU: CPU_LEVELS, Device.GPU: GPU_LEVELS}
"""The levels to compare on each kind of device, by the id of its backend."""


def colour(level: Level | str) -> str:
    """Return the colour of a level, or of the level with this id, as ``#rrggbb``."""
    usual = _LEVELS.get(level if isinstance(level, str) else level.id)
    return OTHER_COLOUR if usual is None else usual.colour
