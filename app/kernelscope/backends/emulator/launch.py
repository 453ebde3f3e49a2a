"""Runs the launches of a plan on host memory, block by block, on all cores."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, wait
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.backends.cuda.arguments import geometry
from kernelscope.base.errors import DeviceUnavailable, OutOfMemory
from kernelscope.engine.control import CancelToken
from kernelscope.schema.borders import Border
from kernelscope.schema.launch import HARDWARE_BORDERS, CudaPlan, CudaTask, Launch

_BLOCKS_AT_ONCE = 64
_OPERATIONS_AT_ONCE = 5e7
"""Blocks between two looks at the cancel token, and operations, which take 0.1 s or so."""

_MOST_THREADS = 1024

_ROOM = 4096
"""Bytes on each side of an array. `checks.h` names the array that an access misses by fewer."""

_ADDRESSING = {Border.REFLECT: 3, Border.WRAP: 2, Border.CONSTANT: 1}
"""The numbers in `emulator.h` of a texture's address modes; 0 is the nearest texel."""


class _Texture(ctypes.Structure):
    """``emulator::Texture``."""

    _fields_ = (
        ("texels", ctypes.c_void_p),
        ("columns", ctypes.c_int),
        ("rows", ctypes.c_int),
        ("addressing", ctypes.c_int),
    )


@dataclass
class Memory:
    """The arrays that the kernels of a plan read and write.

    Source and output are C-contiguous, of the shapes of the task; scratch has the bytes of each
    buffer.
    """

    source: NDArray[Any]
    output: NDArray[Any]
    scratch: Mapping[str, NDArray[np.uint8]]

    @classmethod
    def of(cls, task: CudaTask, plan: CudaPlan, source: NDArray[Any]) -> Memory:
        rows = task.output_shape[0]
        return cls(
            _copy_apart(source),
            _apart(task.output_shape, task.dtype),
            {
                name: _apart((buffer.size(rows, rows),), np.dtype(np.uint8))
                for name, buffer in plan.scratch.items()
            },
        )


def _apart(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return an array with room on both sides: accesses just outside are in no other array."""
    size = math.prod(shape) * dtype.itemsize
    return np.empty(size + 2 * _ROOM, np.uint8)[_ROOM:][:size].view(dtype).reshape(shape)


def _copy_apart(array: NDArray[Any]) -> NDArray[Any]:
    copy = _apart(array.shape, array.dtype)
    copy[...] = array
    return copy


@dataclass
class Handed:
    """Arrays that a launch gives its kernel, by the names that they have in its source."""

    tables: Mapping[str, NDArray[Any]]
    constants: Mapping[str, NDArray[Any]]


def run_launch(
    library: ctypes.CDLL,
    launch: Launch,
    task: CudaTask,
    memory: Memory,
    workers: Sequence[Executor | None],
    token: CancelToken,
    report: Callable[[float], None],
    watch: Callable[[Handed], None] | None = None,
    blocks: Sequence[range] | None = None,
    rows: range | None = None,
) -> None:
    """Run one launch of a plan, all of its steps.

    - `workers`: executors of one thread each; None stands for the calling thread.
    - `report`: gets the part that is done.
    - `watch`: gets the arrays before the kernel does.
    - `blocks`: numbers of the blocks to run; by default all.
    - `rows`: rows of the output that the blocks compute; by default all.

    Raises `DeviceUnavailable` if the threads of a block wait for each other for ever.
    """
    _set_constants(library, launch)
    tables = [_copy_apart(table) for table in launch.tables]
    texture = _texture(launch, task, memory)
    first = memory.source.ctypes.data if texture is None else ctypes.addressof(texture)
    pointers = [first, memory.output.ctypes.data]
    pointers += [table.ctypes.data for table in tables]
    pointers += [memory.scratch[name].ctypes.data for name in launch.scratch]
    if watch is not None:
        named = {f"table {number}": table for number, table in enumerate(tables, start=1)}
        watch(Handed(named, launch.constants))
    hardware = _hardware_border(launch, task)
    rows = range(task.output_shape[0]) if rows is None else rows
    fields = np.array(geometry(task, rows.start, rows.stop, hardware_border=hardware), np.int32)
    host_copy = _host_copy(launch, memory)
    pieces = list(_pieces(launch))
    for number, (begin, end) in enumerate(pieces):
        if host_copy is not None:
            _hand_over(launch, memory, host_copy, begin)
        numbers = (ctypes.c_int * 2)(begin, end)
        places = (ctypes.c_void_p * len(pointers))(*pointers)
        values = [ctypes.addressof(places) + 8 * n for n in range(len(pointers))]
        values.append(fields.ctypes.data)
        if launch.steps:
            values += [ctypes.addressof(numbers) + 4 * n for n in range(2)]

        def part(fraction: float, number: int = number) -> None:
            report((number + fraction) / len(pieces))

        _run_grid(library, launch, task, values, workers, token, part, blocks)


def _pieces(launch: Launch) -> Iterator[tuple[int, int]]:
    """Yield the first step and the one after the last of each kernel launch."""
    steps = max(launch.steps, 1)
    at_once = launch.steps_at_once or steps
    for begin in range(0, steps, at_once):
        yield begin, min(begin + at_once, steps)


def _hardware_border(launch: Launch, task: CudaTask) -> bool:
    return (
        launch.texture
        and launch.texture_of is None
        and task.shape[-1] == 1
        and task.border in HARDWARE_BORDERS
    )


def _texture(launch: Launch, task: CudaTask, memory: Memory) -> _Texture | None:
    if not launch.texture:
        return None
    if launch.texture_of is not None:
        name, columns = launch.texture_of
        texels = memory.scratch[name]
        return _Texture(texels.ctypes.data, columns, texels.nbytes // (4 * columns), 0)
    addressing = _ADDRESSING.get(task.border, 0) if _hardware_border(launch, task) else 0
    return _Texture(memory.source.ctypes.data, task.row_samples, task.shape[0], addressing)


def _set_constants(library: ctypes.CDLL, launch: Launch) -> None:
    for name, values in launch.constants.items():
        data = np.ascontiguousarray(values)
        place = (ctypes.c_char * data.nbytes).in_dll(library, name)
        ctypes.memmove(place, data.ctypes.data, data.nbytes)


def _host_copy(launch: Launch, memory: Memory) -> NDArray[np.float32] | None:
    """Return a copy of the buffer of which the host hands over parts."""
    if launch.hand_over is None:
        return None
    lines, pitch = launch.hand_over.lines, launch.hand_over.pitch
    cells = memory.scratch[launch.hand_over.source].view(np.float32)
    return cells.reshape(-1, lines, pitch // lines).copy()


def _hand_over(launch: Launch, memory: Memory, copy: NDArray[np.float32], step: int) -> None:
    """Give the kernel its part of a step, as `HandOver` says."""
    assert launch.hand_over is not None
    rows, columns = launch.hand_over.parts[step]
    part = np.ascontiguousarray(copy[rows, :, columns]).view(np.uint8).ravel()
    memory.scratch[launch.hand_over.target][: part.size] = part


def sizes_of(launch: Launch, task: CudaTask) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Return the blocks of the grid and the threads of a block, in x, y and z."""
    across, down, deep = (*launch.grid(task.output_shape), 1)[:3]
    columns, rows, slices = (*launch.block, 1)[:3]
    rows = min(rows, _MOST_THREADS // columns) if launch.tile is None else rows
    return (across, down, deep), (columns, rows, slices)


def _run_grid(
    library: ctypes.CDLL,
    launch: Launch,
    task: CudaTask,
    values: list[int],
    workers: Sequence[Executor | None],
    token: CancelToken,
    report: Callable[[float], None],
    chosen: Sequence[range] | None = None,
) -> None:
    """Run blocks of a kernel launch; each worker takes the next few."""
    grid, block = sizes_of(launch, task)
    sizes = (ctypes.c_uint * 6)(*grid, *block)
    pointers = (ctypes.c_void_p * len(values))(*values)
    runs = [range(math.prod(grid))] if chosen is None else chosen
    blocks, done = sum(map(len, runs)), 0
    count = blocks_at_once(launch, task, math.prod(grid))
    batches = iter([part[at : at + count] for part in runs for at in range(0, len(part), count)])

    def work() -> None:
        nonlocal done
        for batch in batches:  # an iterator of a list gives each one to one thread
            token.check()
            status = library.emulator_run(
                sizes, ctypes.c_size_t(launch.shared_bytes), batch.start, batch.stop, pointers
            )
            if status:
                _raise(library, launch, status)
            done += len(batch)
            report(done / blocks)

    others = [each.submit(work) for each in workers if each is not None and blocks > 1]
    try:
        work()
    finally:
        wait(others)
    for each in others:
        each.result()


def blocks_at_once(launch: Launch, task: CudaTask, blocks: int) -> int:
    """Return how many blocks run between two looks at the cancel token."""
    operations = launch.operations_per_sample * math.prod(task.output_shape)
    each = operations / max(launch.steps, 1) / blocks
    return max(1, min(_BLOCKS_AT_ONCE, int(_OPERATIONS_AT_ONCE / max(each, 1.0))))


def _raise(library: ctypes.CDLL, launch: Launch, status: int) -> None:
    if status == 2:
        raise OutOfMemory(
            f"There is not enough memory for the threads of a block of {launch.kernel}.",
            "Close other programs.",
        )
    function = library.emulator_fault
    function.restype = ctypes.c_char_p
    fault = (function() or b"unknown").decode()
    raise DeviceUnavailable(f"{launch.kernel} was stopped: {fault}.", "Correct the kernel.")
