"""Constants with which the kernels of linear filters divide."""

from __future__ import annotations

import numpy as np

from kernelscope.filters.shared.correlation_cuda import reciprocal
from tests.pairs import together

LIMIT = 2**31
"""The numerators of the kernels are smaller."""


@together("divisor", [*range(1, 300), 6561, 65535, 65536, 65537, 2**22 + 1])
def test_a_product_divides_exactly(divisor: int) -> None:
    """At the ends of the range, and around multiples of the divisor, where a quotient changes."""
    factor, shift = reciprocal(divisor)
    assert 2**31 <= factor < 2**32
    twice = 2 * divisor
    last = (LIMIT - 1) // twice
    quotients = np.array([0, 1, 2, 3, last // 2, last - 1, last], np.uint64)
    near = np.arange(-2, 3)
    dividends = (quotients[:, None].astype(np.int64) * twice + near).ravel()
    dividends = np.append(dividends, [LIMIT - 2, LIMIT - 1])
    dividends = dividends[(dividends >= 0) & (dividends < LIMIT)].astype(np.uint64)
    products = dividends * np.uint64(factor) >> np.uint64(32 + shift)
    np.testing.assert_array_equal(products, dividends // np.uint64(twice))
