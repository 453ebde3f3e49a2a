"""Parts of a source, also beyond its edges."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelscope.files.lazy import take
from kernelscope.schema.crop import Box
from kernelscope.schema.samples import Kind
from tests.lazy.arrays import ArraySource

SAMPLES = np.arange(5 * 4 * 3, dtype=np.uint16).reshape(5, 4, 3)


class Noting(ArraySource):
    """An array that notes the boxes that are read."""

    def __init__(self) -> None:
        super().__init__(SAMPLES, Kind.VOLUME)
        self.boxes: list[Box] = []

    def read(self, box: Box) -> NDArray[np.uint16]:
        self.boxes.append(box)
        self.last = super().read(box)
        return self.last


def ranges(side: int) -> list[range]:
    """Return ranges within an axis, across each of its ends, across both, and beyond it."""
    return [range(side), range(1, side), range(-2, 2), range(side - 1, side + 2),
            range(-side - 1, 2 * side + 1), range(side, side + 1), range(-1, 0)]  # fmt: skip


@pytest.mark.parametrize("rows", ranges(4))
@pytest.mark.parametrize("slices", ranges(5))
def test_a_part_continues_on_the_other_side(slices: range, rows: range) -> None:
    for columns in ranges(3):
        taken = take(Noting(), (slices, rows, columns))
        sides = zip((slices, rows, columns), SAMPLES.shape, strict=True)
        index = [np.array(each) % side for each, side in sides]
        np.testing.assert_array_equal(taken, SAMPLES[np.ix_(*index)])
        assert taken.flags.c_contiguous


def test_a_part_within_the_source_is_read_at_once_and_others_in_few_pieces() -> None:
    source = Noting()
    taken = take(source, (range(1, 4), range(4), range(1, 2)))
    assert source.boxes == [Box((1, 0, 1), (3, 4, 1))]
    assert taken is source.last  # a copy would take memory that nobody claims
    source.boxes.clear()
    take(source, (range(-1, 6), range(1, 3), range(3)))
    assert source.boxes == [
        Box((4, 1, 0), (1, 2, 3)), Box((0, 1, 0), (5, 2, 3)), Box((0, 1, 0), (1, 2, 3)),
    ]  # fmt: skip


def test_ranges_need_an_axis_each() -> None:
    with pytest.raises(ValueError, match="zip"):
        take(Noting(), (range(2), range(2)))
