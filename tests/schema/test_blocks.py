"""Blocks of threads that the user asks for."""

from __future__ import annotations

import pytest

from kernelscope import filters
from kernelscope.base.errors import InvalidParameter
from kernelscope.schema.blocks import USUAL_BLOCKS, block_name, check_block, read_block, takes_block
from kernelscope.schema.levels import GLOBAL, GPU_LEVELS, TUNED
from kernelscope.schema.samples import Kind
from tests.pairs import together


@together(
    ("text", "block"),
    [("16x16", (16, 16)), (" 256 X 1", (256, 1)), ("32×32", (32, 32)), ("14*18", (14, 18))],
)
def test_texts(text: str, block: tuple[int, int]) -> None:
    assert read_block(text) == block
    assert read_block(block_name(block)) == block


@together("text", ["", "16", "16x", "x16", "16x16x1", "-8x8", "99999x1", "a x b"])
def test_what_is_no_block(text: str) -> None:
    with pytest.raises(InvalidParameter, match="is no block of threads"):
        read_block(text)


@pytest.mark.parametrize(("block", "fits"), [((32, 32), True), ((33, 32), False), ((1, 32), True)])
def test_most_threads(block: tuple[int, int], fits: bool) -> None:
    if fits:
        assert check_block(block) == block
        return
    with pytest.raises(InvalidParameter, match=r"33×32 has 1056 threads\. .* 32 to 1024"):
        check_block(block)


@pytest.mark.parametrize("text", ["31x1", "0x64", "1x1025"])
def test_too_few_and_too_many(text: str) -> None:
    with pytest.raises(InvalidParameter, match="threads"):
        read_block(text)


def test_what_is_offered_can_be_had() -> None:
    assert [check_block(block) for block in USUAL_BLOCKS] == list(USUAL_BLOCKS)


def test_levels_up_to_texture_take_blocks() -> None:
    mean, noise = filters.get("mean"), filters.get("gaussian_noise")
    assert [takes_block(mean, level.id) for level in GPU_LEVELS] == [
        # no level constant: there is no mask
        *(True, True, False, True, True, False),
    ]
    assert not takes_block(noise, GLOBAL.id)
    assert not any(takes_block(mean, level) for level in ("parallel", "nonsense"))
    for kind in Kind:
        assert not any(takes_block(spec, TUNED.id) for spec in filters.discover(kind).values())
