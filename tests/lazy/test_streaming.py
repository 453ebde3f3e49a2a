"""Blocks fit into the memory that is given, and are written in their order."""

from __future__ import annotations

import itertools
import operator
import threading
import tracemalloc
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelscope import filters
from kernelscope.backends.cpu import CpuBackend
from kernelscope.base.errors import Cancelled, ImageReadError, ImageWriteError, OutOfMemory
from kernelscope.big.lazy import blocks
from kernelscope.big.lazy.blocks import AT_ONCE, cut, needed, plan
from kernelscope.big.lazy.filtered import filtered
from kernelscope.big.lazy.streaming import stream
from kernelscope.engine.control import CancelToken
from kernelscope.engine.run import execute
from kernelscope.engine.step import Step
from kernelscope.files.lazy import LazySource, Sides
from kernelscope.schema.crop import Box
from kernelscope.schema.samples import Kind
from tests.contract.test_pictures import make
from tests.lazy.arrays import ArraySource
from tests.pairs import in_turn
from tests.patience import PATIENCE


def hollow(shape: Sides, kind: Kind, dtype: str = "uint16") -> ArraySource:
    """Return a source of any size that takes no memory."""
    return ArraySource(np.broadcast_to(np.dtype(dtype).type(0), shape), kind, "big.tif")


def lazily(source: ArraySource, filter_id: str, parameters: Any) -> LazySource:
    step = Step.of_numbers(filter_id, parameters)
    return filtered(
        source, step, lambda request: pytest.fail("nothing is computed"), cover=no_boxes
    )


def no_boxes(source: LazySource) -> Any:
    return ()


def volume_of_boxes(boxes: list[Box]) -> int:
    return sum(box.pixels for box in boxes)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "kind"),
    [
        ((200_000, 150_000, 3), Kind.PICTURE),
        ((40, 30_000_000, 1), Kind.PICTURE),
        ((4096, 3000, 2000), Kind.VOLUME),
        ((3, 120_000, 90_000), Kind.VOLUME),
    ],
)
@pytest.mark.parametrize("budget", [24 << 20, 600 << 20])
def test_blocks_cover_the_source_and_fit(shape: Sides, kind: Kind, budget: int) -> None:
    lazy = lazily(hollow(shape, kind), "median", {"size": 31})
    boxes = plan(lazy, budget)
    assert volume_of_boxes(boxes) == np.prod(shape)
    assert boxes == sorted(boxes)
    for box in (boxes[0], boxes[len(boxes) // 2], boxes[-1]):
        assert needed(lazy, box) <= budget
    # The halo does not take most of the work.
    typical = boxes[len(boxes) // 2]
    if kind is Kind.PICTURE and typical.sides[0] < shape[0]:
        assert typical.sides[0] >= 31


def test_blocks_are_whole_rows_or_slices_where_they_fit() -> None:
    boxes = plan(lazily(hollow((9000, 8000, 1), Kind.PICTURE), "mean", {"size": 5}), 1 << 30)
    assert {box.sides[1] for box in boxes} == {8000}
    assert len(boxes) > AT_ONCE
    boxes = plan(lazily(hollow((900, 800, 700), Kind.VOLUME), "mean", {"size": 5}), 1 << 30)
    assert {box.sides[1:] for box in boxes} == {(800, 700)}


def test_blocks_end_where_the_parts_of_files_end() -> None:
    lazy = lazily(hollow((640, 2048, 2048), Kind.VOLUME), "mean", {"size": 5})
    for budget in (96 << 20, 2 << 30):
        boxes = plan(lazy, budget, (16, 128, 128))
        for first in zip(*(box.first for box in boxes), strict=True):
            assert {place % 16 for place in first} == {0}


def test_every_sample_is_in_one_block() -> None:
    counts = np.zeros((5, 7, 3), np.uint8)
    boxes = list(cut((5, 7, 3), (2, 3, 2)))
    for box in boxes:
        box.of(counts)[...] += 1
    assert (counts == 1).all()
    assert boxes == sorted(boxes)


def test_two_blocks_their_results_and_one_that_is_written_are_paid_for() -> None:
    source = hollow((90, 80, 3), Kind.PICTURE)
    bytes_ = 4 * 5 * 3 * 2
    assert needed(source, Box((1, 2, 0), (4, 5, 3))) == AT_ONCE * bytes_ + 2 * bytes_


@pytest.mark.parametrize(
    ("shape", "dtype", "count"),
    [
        ((160_000, 8000, 1), "uint16", 16),  # so that reading and writing overlap
        ((16_384, 8192, 1), "uint8", 4),  # of 32 MiB, and not 16 of 8 MiB
        ((4096, 8192, 1), "uint8", 1),
    ],
)
def test_with_memory_enough_blocks_are_few_but_not_one(
    shape: Sides, dtype: str, count: int
) -> None:
    boxes = plan(hollow(shape, Kind.PICTURE, dtype), 1 << 40)
    assert [box.sides for box in boxes] == [(shape[0] // count, *shape[1:])] * count


@pytest.mark.parametrize(
    ("grain", "sides"),
    [
        ((1, 1, 1), (51, 256, 256)),
        ((16, 128, 64), (48, 256, 256)),
        ((64, 2, 2), (64, 128, 256)),  # halves of 64 slices, and not 51 of them
    ],
)
def test_blocks_are_as_high_as_memory_and_the_parts_of_files_allow(
    grain: Sides, sides: Sides
) -> None:
    """A slice has 128 KiB; two blocks that are read, and two results, are in memory."""
    source, budget = hollow((1024, 256, 256), Kind.VOLUME), 51.5 * 4 * (128 << 10)
    boxes = plan(source, budget, grain)
    assert boxes[0].sides == sides
    assert {box.sides[1:] for box in boxes} == {sides[1:]}
    if grain == (1, 1, 1):
        assert boxes == plan(source, budget)


def test_halves_are_multiples_of_the_parts_of_files() -> None:
    assert list(blocks._halved(100, 16)) == [100, 64, 32, 16, 8, 4, 2, 1]
    assert list(blocks._halved(7, 1)) == [7, 4, 2, 1]
    assert list(blocks._halved(1, 16)) == [1]


def test_the_largest_count_that_fits_is_found() -> None:
    for most, limit, grain in itertools.product(range(1, 20), range(22), range(1, 6)):
        best = min(most, limit)
        aligned = best // grain * grain if grain < best < most else best
        found = blocks._largest(partial(operator.ge, limit), most, grain)
        assert found == aligned, (most, limit, grain)


def test_a_small_source_is_one_block() -> None:
    assert plan(lazily(hollow((30, 20, 3), Kind.PICTURE), "mean", {}), 1 << 30) == [
        Box((0, 0, 0), (30, 20, 3))
    ]


def test_too_little_memory_is_refused_with_the_least_amount() -> None:
    lazy = lazily(hollow((9000, 8000, 1), Kind.PICTURE), "median", {"size": 31})
    with pytest.raises(OutOfMemory, match=r"big\.tif in blocks: the smallest takes 1 MiB, and 0"):
        plan(lazy, 1 << 13)
    channels = hollow((9, 9, 1_000_000), Kind.PICTURE)  # a pixel has 2 MB, two blocks take 8 MB
    with pytest.raises(OutOfMemory, match="the smallest takes 8 MiB, and 3 MiB are left"):
        plan(channels, 3 << 20)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("filter_id", "dtype"),
    in_turn(tuple(filters.discover()), ("uint8", "uint16", "float32"), every=3),
)
def test_no_filter_takes_more_memory_than_its_blocks_claim(filter_id: str, dtype: str) -> None:
    """By allocations of NumPy; the claim is the same for every filter, and for the largest."""
    spec = filters.get(filter_id)
    given: dict[str, Any] = {"search_radius": 3, "filter_sigma": 0.1} if filter_id == "nlm" else {}
    if spec.noise is not None:  # blocks refuse to look for its kind
        given = {**given, spec.noise.parameter: spec.noise.white}
    step = Step.of_numbers(filter_id, given)
    if spec.uncroppable(step.parameters):
        pytest.skip("needs the whole picture")
    pixels: NDArray[Any] = make(np.dtype(dtype), "random", (512, 768))[:, :, :3].copy()
    backend = CpuBackend(threads=2)
    lazy = filtered(
        ArraySource(pixels, Kind.PICTURE), step, lambda one: execute(one, {"cpu": backend})
    )
    box = Box((64, 0, 0), (384, 768, lazy.shape[2]))
    lazy.read(box)  # compiles
    tracemalloc.start()
    lazy.read(box)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    backend.close()
    assert peak <= lazy.working_bytes(box)


# --- streaming ---


@dataclass
class Kept:
    """A sink in memory."""

    found: NDArray[Any]
    boxes: list[Box] = field(default_factory=list)

    def write(self, box: Box, samples: NDArray[Any]) -> None:
        box.of(self.found)[...] = samples
        self.boxes.append(box)


class Slow(ArraySource):
    """Reads the first block after the second, and counts those at work.

    The first blocks wait for each other, so that as many are at work as there may be.
    """

    def __init__(self, array: NDArray[Any]) -> None:
        super().__init__(array, Kind.VOLUME)
        self.most = self.working = 0
        self.lock, self.first = threading.Lock(), threading.Barrier(AT_ONCE)
        self.second = threading.Event()

    def read(self, box: Box) -> NDArray[Any]:
        with self.lock:
            self.working += 1
            self.most = max(self.most, self.working)
        if box.first[0] < AT_ONCE:
            self.first.wait(PATIENCE)
        if box.first[0] == 0:
            self.second.wait(PATIENCE)
        with self.lock:
            self.working -= 1
        samples = super().read(box)
        if box.first[0] == 1:
            self.second.set()
        return samples


def test_blocks_are_written_in_order_and_two_are_at_work() -> None:
    array = np.arange(6 * 5 * 4, dtype=np.uint16).reshape(6, 5, 4)
    source, sink, seen = Slow(array), Kept(np.zeros_like(array)), []
    boxes = list(cut((6, 5, 4), (1, 5, 4)))
    report = stream(source, sink, boxes, progress=lambda stage, part: seen.append((stage, part)))
    np.testing.assert_array_equal(sink.found, array)
    assert sink.boxes == boxes
    assert source.most == AT_ONCE
    assert [part for _, part in seen] == [(n + 1) / 6 for n in range(6)]
    assert (report.blocks, report.samples) == (6, 120)
    assert report.seconds > 0
    assert report.peak_bytes is None or report.peak_bytes > 2**20


def test_the_first_failure_ends_it() -> None:
    class Broken(ArraySource):
        def read(self, box: Box) -> NDArray[Any]:
            if box.first[0] == 2:
                raise ImageReadError("cut off")
            return super().read(box)

    array = np.ones((60, 5, 4), np.uint8)
    sink, token = Kept(np.zeros_like(array)), CancelToken()
    boxes = list(cut((60, 5, 4), (1, 5, 4)))
    with pytest.raises(ImageReadError, match="cut off"):
        stream(Broken(array, Kind.VOLUME), sink, boxes, token)
    assert sink.boxes == boxes[:2]
    assert token.cancelled


def test_a_full_disk_ends_it() -> None:
    class Full(Kept):
        def write(self, box: Box, samples: NDArray[Any]) -> None:
            raise ImageWriteError("full")

    source = Slow(np.ones((600, 5, 4), np.uint8))
    with pytest.raises(ImageWriteError, match="full"):
        stream(source, Full(np.zeros(1)), list(cut((600, 5, 4), (1, 5, 4))))


def test_cancel_ends_it() -> None:
    token, array = CancelToken(), np.ones((60, 5, 4), np.uint8)
    sink = Kept(np.zeros_like(array))
    with pytest.raises(Cancelled):
        stream(
            ArraySource(array, Kind.VOLUME),
            sink,
            list(cut((60, 5, 4), (1, 5, 4))),
            token,
            lambda stage, part: token.cancel() if part > 0.1 else None,
        )
    assert len(sink.boxes) == 7
