"""The levels compute the same as textbook kernels; `bench_levels` compares the cost of both."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np
import pytest

from kernelscope.backends.cuda import CudaBackend
from tests.gpu.contenders import Card
from tests.gpu.textbook import Case, all_cases, differing
from tests.gpu.textbook_nlm import Contest, Plain, contests, noisy, ours

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def card() -> Iterator[Card]:
    with Card() as card:
        yield card


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case.name)
def test_masks_on_the_interior(case: Case, card: Card) -> None:
    assert set(differing(card, case, 300).values()) == {0}


@pytest.mark.parametrize(
    "contest", contests(96, (9, 37, 45)), ids=lambda contest: str(contest.kernels)
)
def test_non_local_means(contest: Contest, gpu: CudaBackend) -> None:
    with contextlib.closing(Plain(gpu, contest)) as plain:
        wanted, _ = plain.run()
    source, found = noisy(contest.shape), ours(gpu, contest)[0]
    assert np.abs(wanted - source).max() > 0.01 * source.max()  # it does something
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-4 * source.max())
