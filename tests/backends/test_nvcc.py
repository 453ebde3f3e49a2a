"""nvcc takes the kernels as NVRTC does: the backend prefers it where both are there."""

from __future__ import annotations

import pytest

from app.backends.cuda.compiler import Nvcc
from app.backends.cuda.sources import read_source
from app.filters.spec import FilterSpec
from tests.backends.specialisations import gpu_filters


@pytest.mark.parametrize("spec", gpu_filters(), ids=lambda spec: spec.id)
def test_compiles(spec: FilterSpec) -> None:
    nvcc = Nvcc.find()
    if nvcc is None:
        pytest.skip("there is no nvcc with a host compiler")
    cubin = nvcc.compile(spec.id, read_source(spec.id), "sm_75", {})
    assert cubin.code.startswith(b"\x7fELF")
    assert "warning" not in cubin.log
