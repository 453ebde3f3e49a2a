"""Non-local means gives the same as plain kernels of the same memory."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

from kernelscope.backends.cuda import CudaBackend
from tests.gpu.textbook_nlm import Contest, Plain, contests, noisy, ours

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize(
    "contest", contests(96, (9, 37, 45)), ids=lambda contest: str(contest.kernels)
)
def test_plain_kernels_agree(contest: Contest, gpu: CudaBackend) -> None:
    with contextlib.closing(Plain(gpu, contest)) as plain:
        wanted, _ = plain.run()
    source, found = noisy(contest.shape), ours(gpu, contest)[0]
    assert np.abs(wanted - source).max() > 0.01 * source.max()  # it does something
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-4 * source.max())
