"""Finds faults of a kernel in memory, also where its results come out right.

The emulated GPU runs kernels that were compiled with `checks.h`, which looks at every access. It
finds reads and writes outside the arrays, reads of cells that nothing has written, indices beyond
the size of an array, and races: two threads at one cell, one of them writing, with no barrier
between them. Blocks run one after the other, but accesses of two blocks are never taken to be
ordered. It also counts the bytes that are read of arrays in global memory.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.backends.cuda.compiler import CubinCache
from kernelscope.backends.cuda.sources import read_source
from kernelscope.backends.emulator.backend import EmulatorBackend
from kernelscope.backends.emulator.compiler import HostCompiler, library_cache
from kernelscope.backends.emulator.launch import Handed, Memory, run_launch
from kernelscope.backends.emulator.symbols import Symbols
from kernelscope.backends.emulator.translation import CHECKS, translate
from kernelscope.base.compiled import load_library
from kernelscope.base.errors import AppError, DeviceUnavailable
from kernelscope.engine.context import RunContext
from kernelscope.engine.control import CancelToken
from kernelscope.schema.launch import CudaTask, Launch
from kernelscope.traffic.trace import MemorySpace

_MOST_FINDINGS = 64


class MistakeKind(IntEnum):
    """The kinds of mistakes, numbered as in ``checks.h``."""

    OUTSIDE = 0
    UNINITIALISED = 1
    RACE_OF_WRITES = 2
    RACE_WITH_READ = 3
    INDEX = 4


@dataclass(frozen=True)
class Finding:
    """A mistake at one line of a kernel; the first of `count` accesses is described."""

    kind: MistakeKind
    kernel: str
    place: str  # file and line; empty if unknown
    array: str  # its name; empty if the address is far from all arrays
    offset: int
    """In bytes from the beginning of the array; the index itself for `MistakeKind.INDEX`."""
    size: int  # bytes of the access
    write: bool
    # Numbers in the grid and in the block.
    block: int
    thread: int
    other: tuple[int, int] | None  # block and thread that the access is not ordered with
    count: int

    def __str__(self) -> str:
        verb = "writes" if self.write else "reads"
        count = "1 byte" if self.size == 1 else f"{self.size} bytes"
        where = f"{count} at offset {self.offset} of {self.array or 'no array'}"
        match self.kind:
            case MistakeKind.OUTSIDE:
                text = f"{verb} outside its arrays: {where}"
            case MistakeKind.UNINITIALISED:
                text = f"reads a cell that nothing has written: {where}"
            case MistakeKind.INDEX:
                text = f"uses the index {self.offset}, which is beyond the size of the array"
            case _:
                block, thread = self.other or (0, 0)
                text = (
                    f"{verb} {where}, without a barrier between it and thread {thread} "
                    f"of block {block}"
                )
        times = f" ({self.count:,} times)" if self.count > 1 else ""
        who = f"{self.kernel}, block {self.block}, thread {self.thread}"
        return f"{self.place or 'unknown line'}: {who} {text}{times}"


class _CheckedRegion(ctypes.Structure):
    """``emulator::checks::Region``."""

    _fields_ = (
        ("start", ctypes.c_void_p),
        ("bytes", ctypes.c_size_t),
        ("written", ctypes.c_void_p),
        ("read", ctypes.c_uint64),
        ("space", ctypes.c_int),
    )


class _Finding(ctypes.Structure):
    _fields_ = (
        ("instruction", ctypes.c_uint64),
        ("count", ctypes.c_uint64),
        ("offset", ctypes.c_int64),
        *((name, ctypes.c_int) for name in ("kind", "region", "bytes", "write")),
        *((name, ctypes.c_uint) for name in ("block", "thread", "other_block", "other")),
        ("file", ctypes.c_char_p),
        ("line", ctypes.c_int),
    )


@dataclass(frozen=True)
class _Array:
    """A stretch of memory that a kernel may use; `written` says which of its bytes have values."""

    name: str
    start: int
    written: NDArray[np.uint8]
    space: MemorySpace = MemorySpace.GLOBAL


class CheckedBackend(EmulatorBackend):
    """An emulated GPU that looks at every access, far slower.

    `findings` and `read`, bytes of global memory, are of all runs.
    """

    def __init__(self, compiler: HostCompiler | None = None) -> None:
        super().__init__(compiler, threads=1)
        self.findings: list[Finding] = []
        self.read = 0
        self._written: dict[int, NDArray[np.uint8]] = {}
        self._memory: Memory | None = None
        self._symbols: dict[int, Symbols] = {}

    @functools.cached_property
    def _cache(self) -> CubinCache:
        assert self._compiler is not None
        return library_cache(self._compiler.watching())

    def _library(self, file: str, launch: Launch, context: RunContext) -> ctypes.CDLL:
        context.token.check()
        text = translate(read_source(file), launch.defines, launch.kernel, watch=CHECKS)
        code = self._cache.get(launch.kernel, text, "host", {}).code
        if code not in self._libraries:
            library = load_library(code)
            self._libraries[code] = library
            self._symbols[id(library)] = Symbols(code, library)
        return self._libraries[code]

    @property
    def unwritten(self) -> int:
        """Bytes of the last output that no kernel has written."""
        if self._memory is None:
            return 0
        written = self._written[self._memory.output.ctypes.data]
        return int(written.size - np.count_nonzero(written))

    def _launch(
        self,
        library: ctypes.CDLL,
        launch: Launch,
        task: CudaTask,
        memory: Memory,
        token: CancelToken,
        report: Callable[[float], None],
    ) -> None:
        if memory is not self._memory:
            self._memory, self._written = memory, {}
        symbols = self._symbols[id(library)]
        arrays: list[_Array] = []

        def watch(handed: Handed) -> None:
            arrays.extend(self._arrays(memory, launch, handed, symbols))
            _begin(library, arrays)

        try:
            run_launch(library, launch, task, memory, (), token, report, watch)
        except DeviceUnavailable:
            found = list(_findings(library, launch.kernel, arrays, symbols))
            self.findings += found
            if not found:
                raise
        else:
            self.findings += _findings(library, launch.kernel, arrays, symbols)
            library.checks_read.restype = ctypes.c_uint64
            self.read += library.checks_read()
        finally:
            _begin(library, [])  # gives back the notes on each byte

    def _arrays(
        self, memory: Memory, launch: Launch, handed: Handed, symbols: Symbols
    ) -> Iterator[_Array]:
        space = MemorySpace.TEXTURE if launch.texture else MemorySpace.GLOBAL
        texels = launch.texture_of[0] if launch.texture_of else None
        source = self._array("the source", memory.source, True)
        yield source if texels else replace(source, space=space)
        yield self._array("the output", memory.output, False)
        for name, table in handed.tables.items():
            yield self._array(name, table, True)
        for name, buffer in memory.scratch.items():
            given = launch.hand_over is not None and launch.hand_over.target == name
            planned = self._array(f"the buffer {name}", buffer, given)
            yield replace(planned, space=space) if name == texels else planned
        for name, values in handed.constants.items():
            start, size = symbols.constants[name]
            written = np.zeros(size, np.uint8)
            written[: np.asarray(values).nbytes] = 1
            yield _Array(f"the constant {name}", start, written, MemorySpace.CONSTANT)
        for name, (start, size) in symbols.shared.items():
            written = np.zeros(size, np.uint8)
            yield _Array(f"the shared {name}", start, written, MemorySpace.SHARED)

    def _array(self, name: str, array: NDArray[Any], known: bool) -> _Array:
        start, size = array.ctypes.data, max(array.nbytes, 1)
        written = self._written.get(start)
        if written is None or written.size != size:  # a table of an earlier launch was there
            written = self._written[start] = np.zeros(size, np.uint8)
        if known:
            written[:] = 1
        return _Array(name, start, written)


def _begin(library: ctypes.CDLL, arrays: list[_Array]) -> None:
    regions = (_CheckedRegion * len(arrays))(
        *(
            _CheckedRegion(each.start, each.written.size, each.written.ctypes.data, 0, each.space)
            for each in arrays
        )
    )
    if not library.checks_begin(regions, len(arrays)):
        raise AppError("There is not enough memory to check the kernel.", "Use a smaller image.")


def _findings(
    library: ctypes.CDLL, kernel: str, arrays: list[_Array], symbols: Symbols
) -> Iterator[Finding]:
    raw = (_Finding * _MOST_FINDINGS)()
    for each in raw[: library.checks_findings(raw)]:
        kind = MistakeKind(each.kind)
        race = kind in (MistakeKind.RACE_OF_WRITES, MistakeKind.RACE_WITH_READ)
        array = ""
        if each.region >= 0:
            array = arrays[each.region - 1].name if each.region else "the dynamic shared memory"
        yield Finding(
            kind,
            kernel,
            f"{each.file.decode()}:{each.line}" if each.file else symbols.line(each.instruction),
            array,
            each.offset,
            each.bytes,
            bool(each.write),
            each.block,
            each.thread,
            (each.other_block, each.other) if race else None,
            each.count,
        )
