"""Tests of the filters, one module each; see tests/contract for their common tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.schema.borders import Border
from kernelscope.schema.filter import Cpu, CpuTask, FilterSpec
from kernelscope.schema.levels import PARALLEL


def apply(
    spec: FilterSpec,
    source: NDArray[Any],
    parameters: Mapping[str, Any],
    border: Border = Border.REFLECT,
    level: str = PARALLEL.id,
) -> NDArray[Any]:
    """Return `source`, shaped as that of a `CpuTask`, filtered on this thread.

    It is read-only as in the program; kernels for other arrays would be compiled for tests alone.
    """
    source = source.view()
    source.flags.writeable = False
    values = spec.validate(parameters)
    output = np.empty(spec.output_shape(source.shape, values, border), source.dtype)
    resolved = spec.resolve(source, values)
    for sweep in spec.implementation(Cpu).plan(CpuTask(source, output, resolved, border, level)):
        sweep.kernel(*sweep.arguments, 0, sweep.rows)
    return output
