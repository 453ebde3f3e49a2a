"""Shared by CPU kernels whose floats have the bytes of a GPU's: products and sums rounded once."""

from __future__ import annotations

from functools import partial
from typing import Any

from kernelscope.base.jit import intrinsic


@partial(intrinsic, result="float32")
def fused(context: Any, builder: Any, types: Any, a: Any, b: Any, c: Any) -> Any:
    """Return a * b + c of three float32, rounded once."""
    return builder.fma(a, b, c)


@partial(intrinsic, result="int32")
def bits_of(context: Any, builder: Any, types: Any, value: Any) -> Any:
    """Return the 32 bits of a float32 as a whole number."""
    from llvmlite import ir  # type: ignore[import-untyped]

    return builder.bitcast(value, ir.IntType(32))


@partial(intrinsic, result="float32")
def float_of(context: Any, builder: Any, types: Any, bits: Any) -> Any:
    """Return the float32 whose `bits_of` these are, an int32."""
    from llvmlite import ir

    return builder.bitcast(bits, ir.FloatType())
