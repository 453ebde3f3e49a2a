"""The tuned median of large masks of bytes, which counts with 32 thresholds at once.

Pictures whose medians are all in reach of the first thresholds, above them, below them, and at
both ends of the range; a threshold too few would show at 0, 255 and where two sets of thresholds
meet.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelscope.backends.emulator.backend import EmulatorBackend
from kernelscope.engine.context import RunContext
from kernelscope.engine.request import Request
from kernelscope.filters.median import cuda
from kernelscope.images.image import Image
from kernelscope.schema import launch
from kernelscope.schema.borders import Border
from kernelscope.schema.levels import TUNED
from tests.filters.test_median import oracle

pytestmark = pytest.mark.slow


def pictures(shape: tuple[int, int]) -> dict[str, NDArray[np.uint8]]:
    random = np.random.default_rng(0)
    rows, columns = np.indices(shape)
    both = rows + columns
    patches = random.integers(0, 256, (shape[0] // 12 + 1, shape[1] // 12 + 1))
    floats: dict[str, Any] = {
        "black": 0 * both,
        "grey": 0 * both + 77,
        "white": 0 * both + 255,
        "checkerboard": 255 * (both % 2),
        "two values": 255 * random.integers(0, 2, shape),
        "ramp": columns % 256,
        "steep": 9 * both % 256,
        "noise": random.integers(0, 256, shape),
        "dark": random.integers(0, 12, shape),
        "bright": random.integers(244, 256, shape),
        "patches": np.kron(patches, np.ones((12, 12)))[: shape[0], : shape[1]],
    }
    return {name: values.astype(np.uint8) for name, values in floats.items()}


def assert_right(
    emulator: EmulatorBackend, pixels: NDArray[np.uint8], size: int, border: Border, name: str
) -> None:
    request = Request.create(Image.from_array(pixels), "median", {"size": size}, border=border)
    run = emulator.run(request, TUNED, RunContext())
    source = pixels.reshape(*pixels.shape[:2], -1)
    expected = oracle(source, {"size": size}, border)
    np.testing.assert_array_equal(run.planes, expected, err_msg=f"{name}, {size}, {border}")


@pytest.mark.parametrize(
    ("size", "border"),
    [
        (13, Border.REDUCE),
        (15, Border.REFLECT),
        (17, Border.VALID),
        (19, Border.WRAP),
        (21, Border.CONSTANT),
        (31, Border.NEAREST),
    ],
)
def test_every_picture_is_right(
    emulator: EmulatorBackend, monkeypatch: pytest.MonkeyPatch, size: int, border: Border
) -> None:
    """67 columns: no whole words of four; strips that end outside of the picture."""
    monkeypatch.setattr(launch, "BY_SIZE", False)
    for name, pixels in pictures((45, 67)).items():
        assert_right(emulator, pixels, size, border, name)


@pytest.mark.parametrize("border", [Border.MIRROR, Border.REDUCE])
def test_blocks_inside_the_picture_and_short_strips(
    emulator: EmulatorBackend, monkeypatch: pytest.MonkeyPatch, border: Border
) -> None:
    """Of 544 x 80 pixels the block in the middle needs no border, and stores eight at once.

    Windows that are cut belong to threads of any block, which may be done before their own one.
    """
    monkeypatch.setattr(cuda, "_SMALL_THRESHOLDS", 0)
    found = pictures((80, 544))
    for name in ("noise", "patches", "steep", "two values"):
        assert_right(emulator, found[name], 13, border, name)


def test_channels_and_pictures_smaller_than_the_mask(
    emulator: EmulatorBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "BY_SIZE", False)
    random = np.random.default_rng(1)
    assert_right(
        emulator, random.integers(0, 256, (21, 40, 3), np.uint8), 13, Border.MIRROR, "colours"
    )
    assert_right(emulator, random.integers(0, 256, (3, 5), np.uint8), 31, Border.REFLECT, "tiny")
