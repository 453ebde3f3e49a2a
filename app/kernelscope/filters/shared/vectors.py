"""Loops over the samples of rows, written as LLVM code with vectors of a fixed length.

LLVM turns plain loops into vectors only if it can prove that their rows do not overlap, or test it
with a few comparisons, which a sweep over nine rows exceeds. `Loops` writes such a sweep out, for
any processor: LLVM splits or joins the vectors for its registers.

A loop of 20 samples takes two steps of `LANES`, of which the last begins early enough to end with
the row; so nothing behind it is read or written, but results must not depend on earlier ones:

    samples     0 1 2 ... 15 16 17 18 19
    step 1      |-----------|
    step 2              |--------------|

Of bytes, whose sums fit 16 bits for the masks that matter, twice as many are in a register as of 32
bits; floats are the sums of `separable`.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from kernelscope.base.jit import Index, Intrinsic, JitKernel, Line, Number, Plane, inlined, kernel
from kernelscope.filters.shared.border_kernels import VALID, border_index
from kernelscope.filters.shared.cosine import bits_of, float_of, fused
from kernelscope.filters.shared.plain import higher, lower

LANES = 16  # samples of a step; rows are at least as long


class Loops:
    """Appends loops over rows to the code of an intrinsic.

    `context` and `builder` are Numba's; `lanes` are samples of a step: rows are at least as long.
    """

    def __init__(self, context: Any, builder: Any, lanes: int = LANES) -> None:
        from llvmlite import ir  # type: ignore[import-untyped]

        self.lanes = lanes
        self._ir = ir
        self._context = context
        self._builder = builder

    def start(self, kind: Any, array: Any) -> Any:
        """Return the pointer to the first sample of a contiguous array."""
        return self._context.make_array(kind)(self._context, self._builder, array).data

    def item(self, values: Any, number: Any) -> Any:
        """Return a number of a table whose first is at `values`."""
        return self._builder.load(self._builder.gep(values, [number]))

    @contextmanager
    def repeat(self, count: Any) -> Iterator[Any]:
        """Write a loop whose index, which it yields, counts from 0 to `count`, at least 1."""
        builder = self._builder
        before = builder.block
        loop, after = builder.append_basic_block(), builder.append_basic_block()
        builder.branch(loop)
        builder.position_at_end(loop)
        index = builder.phi(count.type)
        index.add_incoming(count.type(0), before)
        yield index
        following = builder.add(index, count.type(1))
        index.add_incoming(following, builder.block)
        builder.cbranch(builder.icmp_signed("<", following, count), loop, after)
        builder.position_at_end(after)

    @contextmanager
    def steps(self, count: Any) -> Iterator[Any]:
        """Write a loop over `count` samples, at least `lanes`, and yield where a step begins."""
        builder, intp = self._builder, count.type
        steps = builder.sdiv(builder.add(count, intp(self.lanes - 1)), intp(self.lanes))
        with self.repeat(steps) as step:
            begin, last = builder.mul(step, intp(self.lanes)), builder.sub(count, intp(self.lanes))
            yield builder.select(builder.icmp_signed("<", begin, last), begin, last)

    def sums(
        self, count: Any, first: Sequence[Any], terms: Callable[[Any], Iterable[Any]]
    ) -> list[Any]:
        """Return the vectors `first` plus those of ``terms(i)`` for i from 0 to `count`."""
        builder, before = self._builder, self._builder.block
        loop, body, after = (builder.append_basic_block() for _ in range(3))
        builder.branch(loop)
        builder.position_at_end(loop)
        index = builder.phi(count.type)
        totals = [builder.phi(each.type) for each in first]
        builder.cbranch(builder.icmp_signed("<", index, count), body, after)
        builder.position_at_end(body)
        added = map(self.add, totals, terms(index))
        following = [builder.add(index, count.type(1)), *added]
        for each, begin, end in zip(
            (index, *totals), (count.type(0), *first), following, strict=True
        ):
            each.add_incoming(begin, before)
            each.add_incoming(end, builder.block)
        builder.branch(loop)
        builder.position_at_end(after)
        return totals

    def add(self, a: Any, b: Any) -> Any:
        """Return the sum of two vectors, of whole numbers or of floats."""
        is_whole = isinstance(a.type.element, self._ir.IntType)
        return self._builder.add(a, b) if is_whole else self._builder.fadd(a, b)

    def load(self, row: Any, place: Any, bits: int = 16) -> Any:
        """Return as many samples of a row from `place` on; whole ones widened to this many bits."""
        builder, sample = self._builder, row.type.pointee
        vector = self._ir.VectorType(sample, self.lanes).as_pointer()
        pointer = builder.bitcast(builder.gep(row, [place]), vector)
        samples = builder.load(pointer, align=self._context.get_abi_sizeof(sample))
        is_wide = not isinstance(sample, self._ir.IntType) or sample.width == bits
        return samples if is_wide else builder.zext(samples, self._kind(bits))

    def store(self, samples: Any, row: Any, place: Any) -> None:
        """Write samples to a row from `place` on: as many of their lowest bits as it has."""
        builder, sample = self._builder, row.type.pointee
        if samples.type.element != sample:
            samples = builder.trunc(samples, self._kind(sample.width))
        pointer = builder.bitcast(builder.gep(row, [place]), samples.type.as_pointer())
        builder.store(samples, pointer, align=self._context.get_abi_sizeof(sample))

    def all(self, number: int, bits: int = 16) -> Any:
        """Return a vector of a constant."""
        return self._ir.Constant(self._kind(bits), [number] * self.lanes)

    def spread(self, number: Any, bits: int = 16) -> Any:
        """Return a vector of a number: of a whole one its lowest bits."""
        if isinstance(number.type, self._ir.IntType) and number.type.width > bits:
            number = self._builder.trunc(number, self._ir.IntType(bits))
        kind = self._ir.VectorType(number.type, self.lanes)
        none = self._ir.Constant(kind, self._ir.Undefined)
        first = self._builder.insert_element(none, number, self._ir.IntType(32)(0))
        return self.chosen(first, none, [0] * self.lanes)

    def chosen(self, a: Any, b: Any, places: Sequence[int]) -> Any:
        """Return the lanes of two vectors, one after the other, that `places` name."""
        mask = self._ir.VectorType(self._ir.IntType(32), len(places))
        return self._builder.shuffle_vector(a, b, self._ir.Constant(mask, list(places)))

    def any(self, lanes: Any) -> Any:
        """Return whether a lane of a vector of single bits is 1."""
        builder = self._builder
        number = builder.bitcast(lanes, self._ir.IntType(lanes.type.count))
        return builder.icmp_unsigned("!=", number, number.type(0))

    def added_up(self, numbers: Any) -> Any:
        """Return the sum of the whole numbers of a vector, as an int64."""
        builder, place = self._builder, self._ir.IntType(32)
        each = [builder.extract_element(numbers, place(lane)) for lane in range(self.lanes)]
        return builder.sext(functools.reduce(builder.add, each), self._ir.IntType(64))

    def _kind(self, bits: int) -> Any:
        return self._ir.VectorType(self._ir.IntType(bits), self.lanes)


class Lanes:
    """A vector of float32, of int32 or of bits, with the operators that its numbers have."""

    __array_ufunc__ = None  # NumPy's numbers leave their operators to it

    def __init__(self, loops: Loops, value: Any) -> None:
        self._loops, self._builder, self.value = loops, loops._builder, value

    @classmethod
    def load(cls, loops: Loops, row: Any, place: Any) -> Lanes:
        return cls(loops, loops.load(row, place, 32))

    def store(self, row: Any, place: Any) -> None:
        self._loops.store(self.value, row, place)

    def _of(self, value: Any) -> Any:
        if isinstance(value, Lanes):
            return value.value
        ir, number = self._loops._ir, value.item()
        kind = ir.FloatType() if isinstance(number, float) else ir.IntType(32)
        lanes = self._loops.lanes
        return ir.Constant(ir.VectorType(kind, lanes), [number] * lanes)

    def _made(self, value: Any) -> Lanes:
        return Lanes(self._loops, value)

    @property
    def _whole(self) -> bool:
        return isinstance(self.value.type.element, self._loops._ir.IntType)

    def __add__(self, other: Any) -> Lanes:
        return self._made(self._loops.add(self.value, self._of(other)))

    def __sub__(self, other: Any) -> Lanes:
        subtract = self._builder.sub if self._whole else self._builder.fsub
        return self._made(subtract(self.value, self._of(other)))

    def __rsub__(self, other: Any) -> Lanes:
        return self._made(self._of(other)) - self

    def __mul__(self, other: Any) -> Lanes:
        multiply = self._builder.mul if self._whole else self._builder.fmul
        return self._made(multiply(self.value, self._of(other)))

    def __neg__(self) -> Lanes:
        return self._made(self._builder.fneg(self.value))

    def __abs__(self) -> Lanes:
        return self._called("fabs")

    def __lt__(self, other: Any) -> Lanes:
        return self._made(self._builder.fcmp_ordered("<", self.value, self._of(other)))

    def __le__(self, other: Any) -> Lanes:
        return self._made(self._builder.fcmp_ordered("<=", self.value, self._of(other)))

    def choose(self, yes: Any, no: Any) -> Lanes:
        """Return one of two numbers for each bit."""
        example = yes if isinstance(yes, Lanes) else no
        value = example if isinstance(example, Lanes) else self
        return self._made(self._builder.select(self.value, value._of(yes), value._of(no)))

    def chosen(self, other: Lanes, places: Sequence[int]) -> Lanes:
        return self._made(self._loops.chosen(self.value, other.value, places))

    def shifted(self, bits: int) -> Lanes:
        """Return whole numbers divided by a power of two, rounded down."""
        return self._made(self._builder.ashr(self.value, self._of(np.int32(bits))))

    def as_floats(self) -> Lanes:
        ir = self._loops._ir
        kind = ir.VectorType(ir.FloatType(), self._loops.lanes)
        return self._made(self._builder.sitofp(self.value, kind))

    def as_bytes(self) -> Lanes:
        """Return bits as bytes of 0 or 1."""
        return self._made(self._builder.zext(self.value, self._loops._kind(8)))

    def _bits_as(self, element: Any) -> Lanes:
        kind = self._loops._ir.VectorType(element, self._loops.lanes)
        return self._made(self._builder.bitcast(self.value, kind))

    def _called(self, name: str, *others: Any) -> Lanes:
        """Return the result of LLVM's function of that name."""
        ir, kind = self._loops._ir, self.value.type
        values = [self.value, *map(self._of, others)]
        module = self._builder.module
        name = f"llvm.{name}.v{self._loops.lanes}f32"
        function = module.globals.get(name) or ir.Function(
            module, ir.FunctionType(kind, [kind] * len(values)), name
        )
        return self._made(self._builder.call(function, values))


@inlined
def whole(number: Number) -> Any:
    """Return a difference of numbers of 32 bits, which Numba computes in 64, in as many."""
    return np.int32(number)


_OF_LANES: dict[Any, Callable[..., Lanes]] = {
    fused: lambda a, b, c: a._called("fma", b, c),
    lower: lambda a, b: (a < b).choose(a, b),
    higher: lambda a, b: a._made(a._of(b)).__lt__(a).choose(a, b),
    whole: lambda number: number,
    bits_of: lambda value: value._bits_as(value._loops._ir.IntType(32)),
    float_of: lambda bits: bits._bits_as(bits._loops._ir.FloatType()),
}


def of_lanes(function: JitKernel) -> Callable[..., Any]:
    """Return a function of numbers as one of `Lanes`; its calls are those in `_OF_LANES`."""
    code, names = function.function.__code__, function.function.__globals__
    called = {
        name: _OF_LANES[names[name]]
        for name in code.co_names
        if isinstance(names.get(name), JitKernel | Intrinsic)
    }
    return types.FunctionType(code, {**names, **called})


@kernel
def make_ring(lines: Index, samples: Index) -> Any:
    """Return space for lines of this many bytes, and the bytes from one of them to the next.

    An odd number of lines of the cache, so that lines do not push each other out of it.
    """
    pitch = (samples // 64 + 1 | 1) * 64
    return np.empty(lines * pitch, np.uint8), pitch


@kernel
def padded_row(source: Plane, row: Index, radius: Index, border: Index, blank: Line) -> Any:
    """Return the samples of padded row `row`, without its padding; `blank` outside the image."""
    height, width, channels = source.shape
    y = border_index(row - (0 if border == VALID else radius), height, border)
    return source[y].reshape(width * channels) if y >= 0 else blank


def blank_row(samples: int) -> Any:
    """Return a row of zero bytes, of the type of a picture's rows."""
    row = np.zeros(samples, np.uint8)
    row.flags.writeable = False
    return row
