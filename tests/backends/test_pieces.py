"""How a launch is cut into pieces that end in time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from kernelscope.backends.cuda.device_run import LAUNCH_SECONDS, Pacer, Piece
from kernelscope.schema.launch import Launch
from tests.pairs import together

Pace = Callable[[int], float]


def pieces(pace: Pace, rows: int, steps: int, tile: int, at_once: int | None = None) -> list[Piece]:
    """Return the pieces of a launch over rows 5 and up; `pace` returns how long some units take."""
    launch = Launch("nlm", {}, (32, 8), 1, 1, (32, tile), steps=steps, steps_at_once=at_once)
    pacer = Pacer(launch, 1e7 * max(steps, 1))  # 200 units in the first piece
    found = []
    for piece in pacer.pieces(5, 5 + rows):
        found.append(piece)
        pacer.learn(piece.units, pace(piece.units))
    return found


@together("at_once", [None, 1, 3])
@together(("rows", "steps", "tile"), [(1, 0, 8), (701, 0, 32), (509, 40, 4), (8, 21, 32)])
@together("pace", [lambda units: 1e-7 * units, lambda units: 1e-4 * units, lambda units: 0.2])
def test_every_row_has_every_step_once_and_in_order(
    pace: Pace, rows: int, steps: int, tile: int, at_once: int | None
) -> None:
    done = np.zeros(rows, int)
    for piece in pieces(pace, rows, steps, tile, at_once):
        inside = done[piece.start - 5 : piece.stop - 5]
        assert inside.size == piece.stop - piece.start > 0
        assert (inside == piece.first_step).all()
        assert 0 < piece.last_step - piece.first_step <= (at_once or max(steps, 1))
        inside[:] = piece.last_step
    assert (done == max(steps, 1)).all()


@pytest.mark.parametrize("rows", [690, 999])
def test_several_steps_go_over_all_rows(rows: int) -> None:
    """A rest of a few rows would leave most of the card idle, for as long as many steps take."""
    found = pieces(lambda units: 1e-6 * units, rows, steps=rows, tile=32)
    several = [piece for piece in found if piece.last_step - piece.first_step > 1]
    assert len(several) > 3
    assert {(piece.start, piece.stop) for piece in several} == {(5, 5 + rows)}


def test_pieces_take_half_of_the_time_that_they_may() -> None:
    found = pieces(lambda units: 2e-6 * units, rows=1000, steps=1000, tile=8)
    assert len(found) > 3
    for piece in found[len(found) // 2 : -1]:
        assert 2e-6 * piece.units == pytest.approx(LAUNCH_SECONDS / 2, rel=0.1)
