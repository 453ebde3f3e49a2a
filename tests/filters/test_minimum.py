"""Minimum against NumPy's windows; `test_maximum` has both against SciPy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from kernelscope.schema.borders import Border
from tests.oracle import OWN_FOOTPRINT, extremes, footprint_of

CASES: list[dict[str, Any]] = [
    {"size": 3},
    {"size": 7},
    {"size": 7, "footprint": "disk"},
    {"size": 3, "footprint": "cross"},
    {"footprint": OWN_FOOTPRINT},
]


def oracle(source: NDArray[Any], parameters: Mapping[str, Any], border: Border) -> NDArray[Any]:
    return extremes(source, footprint_of(parameters), border, lowest=True)
