"""Counts of the emulated GPU against the closed forms of the pages."""

from __future__ import annotations

import numpy as np
import pytest

from kernelscope.teach.lecture.page import LectureSubject, NumberOrigin, count
from kernelscope.teach.lecture.pages import PAGES
from tests.backends.emulated import needs_compiler

pytestmark = [
    pytest.mark.slow,
    needs_compiler,
]

SQUARES = LectureSubject("squares", (np.indices((64, 96)).sum(axis=0) % 7 * 36).astype(np.uint8))


def counted(page_id: str, **values: object) -> dict[str, float]:
    page = PAGES[page_id]
    assert page.counted is not None
    facts = count(page.counted(page.defaults() | values), SQUARES)
    assert {fact.origin for fact in facts} == {NumberOrigin.EMULATED}
    return {fact.name: float(fact.value.replace(",", "")) for fact in facts}


def test_a_tile_is_loaded_once_with_its_halo() -> None:
    found = counted("tiles", size=3, block="32x8")
    assert found["Global memory: global loads a pixel"] == pytest.approx(9)
    assert found["Shared memory: global loads a pixel"] == pytest.approx(34 * 10 / 256, abs=0.01)
    assert found["Shared memory: shared loads a pixel"] == pytest.approx(9, abs=0.01)


def test_weights_are_read_for_every_cell() -> None:
    found = counted("constant", size=3)
    constant = found["Constant memory: constant loads a pixel"]
    assert constant >= 9
    assert (
        found["Global memory: global loads a pixel"]
        > found["Constant memory: global loads a pixel"]
    )


def test_a_column_takes_more_sectors_than_a_row() -> None:
    found = counted("coalescing")
    rows = next(
        value for name, value in found.items() if name.startswith("Global memory: global s")
    )
    columns = [
        value
        for name, value in found.items()
        if "sectors" in name and not name.startswith("Global memory")
    ]
    assert columns[0] > 4 * rows


def test_sectors_past_the_first_cache_are_those_of_the_page() -> None:
    """The page has a block inside the picture: at the rim there are fewer."""
    found = counted("caches", size=3, block="32x8")
    page = PAGES["caches"].show(SQUARES, PAGES["caches"].defaults() | {"size": 3})
    (inside,) = (float(each.value) for each in page.facts if each.name.startswith("Bytes past"))
    whole = found["Global memory: bytes past the L1 cache a pixel"] - 1  # the stores
    assert 0.6 * inside < whole < inside


def test_windows_of_threads_meet_in_banks_and_tiles_do_not() -> None:
    found = counted("banks")
    assert found["Selection: turns lost to bank conflicts a pixel"] > 1
    assert found["Shared memory: turns lost to bank conflicts a pixel"] < 0.01


def test_a_texture_is_fetched_for_every_cell() -> None:
    found = counted("textures", size=3)
    assert found["Texture: texture fetches a pixel"] == pytest.approx(9)
