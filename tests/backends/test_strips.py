"""Strips hold exactly the rows that their output needs."""

from __future__ import annotations

import numpy as np

from kernelscope.backends.cuda.strips import strip
from kernelscope.schema.borders import Border
from tests.oracle import PAD_MODES
from tests.pairs import together


@together("border", Border)
@together("radius", [0, 1, 4])
@together("rows", [1, 3, 7, 100])
@together("height", [1, 2, 9, 23])
def test_every_needed_row_is_there(border: Border, radius: int, rows: int, height: int) -> None:
    out_height = height - 2 * radius if border is Border.VALID else height
    if out_height < 1:
        return  # nothing is left
    padded = np.arange(height)
    if border is not Border.VALID:
        mode = PAD_MODES[Border.NEAREST if border is Border.KEEP else border]  # as kernels do
        constant = {"constant_values": -1} if mode == "constant" else {}
        padded = np.pad(padded, radius, mode=mode, **constant)  # type: ignore[call-overload]
    covered = []
    for first in range(0, out_height, rows):
        cut = strip(height, (first, min(first + rows, out_height)), radius, border)
        there: list[int] = []
        for at, row, count in cut.source_pieces(height):
            assert at == len(there)
            there += range(row, row + count)
        assert len(there) == cut.source_rows
        assert all(0 <= row < height for row in there)
        needed = set(padded[cut.first : cut.last + 2 * radius].tolist()) - {-1}
        assert needed <= set(there)
        # The kernel finds row y at (y - source_first) mod height.
        assert all((row - cut.source_first) % height == at for at, row in enumerate(there))
        covered += range(cut.first, cut.last)
    assert covered == list(range(out_height))
