"""Colour maps: the colours that 256 steps from the lowest to the highest value are drawn in."""

from __future__ import annotations

import functools
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

STEPS = 256
"""Length of a table: displays have eight bits."""


class ColourMap(StrEnum):
    """The colour maps to choose from; the value is the name in the interface."""

    GREY = "Grey"
    INVERTED = "Grey, inverted"
    VIRIDIS = "Viridis"
    MAGMA = "Magma"
    DIVERGING = "Blue to red"
    RED = "Red"
    GREEN = "Green"
    BLUE = "Blue"
    CYAN = "Cyan"
    MAGENTA = "Magenta"
    YELLOW = "Yellow"

    @property
    def is_grey(self) -> bool:
        """Whether red, green and blue are equal, so that pictures in colour can use it too."""
        return self in (ColourMap.GREY, ColourMap.INVERTED)


_OF_CHANNELS = {
    ColourMap.RED: "ff0000",
    ColourMap.GREEN: "00ff00",
    ColourMap.BLUE: "0000ff",
    ColourMap.CYAN: "00ffff",
    ColourMap.MAGENTA: "ff00ff",
    ColourMap.YELLOW: "ffff00",
    ColourMap.GREY: "ffffff",
}
"""For the channels of microscopes: from black to a colour, so that several add up."""

_ANCHORS = {
    **{each: ("000000", colour) for each, colour in _OF_CHANNELS.items()},
    ColourMap.INVERTED: ("ffffff", "000000"),
    # Seventeen equally spaced colours of Matplotlib's maps: no step is off by more than 2 of 255.
    ColourMap.VIRIDIS: (
        *("440154", "481769", "472c7a", "423f85", "3b518b", "33628d", "2c718e", "26818e", "21908c"),
        *("1f9f88", "27ad80", "3dbc73", "5cc862", "81d34c", "aadc31", "d5e219", "fde725"),
    ),
    ColourMap.MAGMA: (
        *("000004", "090721", "1c1046", "35106a", "50127b", "691c81", "822581", "9b2e7f", "b63679"),
        *("cf406f", "e55063", "f4695c", "fb8761", "fea571", "fec287", "fde0a1", "fcfdbf"),
    ),
    # Dark where nothing changes, lighter with the size of the change, for a dark surround. Blue
    # and orange-red are distinguishable with every common form of colour blindness.
    ColourMap.DIVERGING: (
        *("d6f0ff", "79c7ff", "2f8fe8", "1d5590", "1a1a1c"),
        *("8a3a1e", "d95f30", "ff9d66", "ffe9d6"),
    ),
}


def map_of(colour: str) -> ColourMap:
    """Return the map of a channel nearest to its colour, six digits; grey where none is known."""
    if not colour.strip("0"):
        return ColourMap.GREY
    wanted = np.array(list(bytes.fromhex(colour)), float)
    wanted *= 255 / wanted.max()

    def distance(each: ColourMap) -> float:
        return float(np.abs(wanted - list(bytes.fromhex(_OF_CHANNELS[each]))).sum())

    return min(_OF_CHANNELS, key=distance)


@functools.cache
def table(colour_map: ColourMap) -> NDArray[np.uint8]:
    """Return the colours of a map, from its lowest to its highest value.

    Shape (256, 3): red, green and blue; read-only.
    """
    anchors = np.array([list(bytes.fromhex(colour)) for colour in _ANCHORS[colour_map]], float)
    places = np.linspace(0, STEPS - 1, len(anchors))
    steps = np.arange(STEPS)
    colours = np.stack([np.interp(steps, places, channel) for channel in anchors.T], axis=1)
    result: NDArray[np.uint8] = np.rint(colours).astype(np.uint8)
    result.flags.writeable = False
    return result
