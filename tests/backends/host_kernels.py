"""The real kernels on the host: compiled by g++, their threads run one after the other.

For tests of arithmetic: rounding, packing and saturating do not depend on the machine
that runs it. Kernels whose threads exchange values within a warp cannot run here.
"""

from __future__ import annotations

import ctypes
import functools
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope import filters
from kernelscope.backends.cuda.sources import read_source
from kernelscope.backends.cuda.strips import Strip
from kernelscope.spec.borders import Border
from kernelscope.spec.launch import Cuda, CudaPlan, CudaTask, Launch
from tests import builds
from tests.backends.specialisations import tuned_at_any_size

COMPILER = shutil.which("g++")
_SHIM = Path(__file__).with_name("host_cuda.h")
_FLAGS = (
    "-std=c++20",
    "-Og",
    "-ffp-contract=off",
    "-fno-strict-aliasing",
    "-w",
    "-fPIC",
    "-pthread",
)
_OPENING, _CLOSING = "([{", ")]}"


@functools.cache
def build(filter_id: str, defines: tuple[tuple[str, str], ...], glue: str) -> ctypes.CDLL:
    """Return a library of ``filter_id.cu`` with C++ code behind it that makes use of it."""
    text = _instructions_called(read_source(filter_id))
    # Of kernels that are compiled, but not run.
    text = re.sub(r"extern __shared__ (.*?)\[\];", r"static \1[16];", text)
    macros = "".join(f"#define {name} {value}\n" for name, value in defines)
    text = f"{macros}{text}\n{glue}\n"

    assert COMPILER
    gcc = (COMPILER, *_FLAGS)

    header = _SHIM.read_text(encoding="utf-8")

    def make(path: Path) -> None:
        # Taken if it is the first token of the file, and takes longer than a small kernel if not.
        shim = builds.precompiled(header, gcc)
        command = (*gcc, "-shared", "-x", "c++", "-", "-o", str(path))
        source = f'#include "{shim}"\n{text}'
        subprocess.run(command, input=source, encoding="utf-8", check=True, timeout=300)

    key = text, header, gcc, builds.version(COMPILER)
    return ctypes.CDLL(str(builds.built(make, ".so", *key)))


def set_constant(library: ctypes.CDLL, name: str, value: NDArray[Any]) -> None:
    place = (ctypes.c_char * value.nbytes).in_dll(library, name)
    ctypes.memmove(place, np.ascontiguousarray(value).ctypes.data, value.nbytes)


def run(
    filter_id: str,
    pixels: NDArray[Any],
    parameters: Mapping[str, Any],
    level: str,
    border: Border = Border.REFLECT,
    root_error: float = 0,
    part: Strip | None = None,
) -> NDArray[Any]:
    """Return `pixels`, shape (height, width, channels), filtered by the kernel of a level.

    Of a `part` these are its rows, computed from those of the source that it names.
    """
    spec = filters.get(filter_id)
    values = spec.validate(parameters)
    output = np.zeros(spec.output_shape(pixels.shape, values, border), pixels.dtype)
    task = CudaTask(pixels.shape, output.shape, pixels.dtype, values, border, level)
    with tuned_at_any_size():
        (launch,) = CudaPlan.of(spec.implementation(Cuda).plan(task)).launches
    table = "(const Weight*)table, " if launch.tables else ""
    library = build(
        filter_id,
        tuple(sorted(launch.defines.items())),
        _LAUNCH.replace("KERNEL", launch.kernel).replace("TABLE", table),
    )
    for name, value in launch.constants.items():
        set_constant(library, name, value)
    ctypes.c_float.in_dll(library, "root_error").value = root_error
    height, width, channels = pixels.shape
    part = part or Strip(0, len(output), 0, height)
    pieces = [pixels[first : first + rows] for _, first, rows in part.source_pieces(height)]
    source, output = np.concatenate(pieces), output[part.first : part.last]
    bounds = part.first, part.last, part.source_first, part.first
    geometry = np.array([width, height, channels, output.shape[1], *bounds, 0], np.int32)
    dims = np.array([*launch.grid(output.shape)[:2], *launch.block[:2]], np.uint32)
    library.run(*map(_pointer, (source, output, *_table(launch), geometry, dims)))
    return output


_LAUNCH = """
extern "C" void run(
    const void* source, void* output, const void* table, const int* numbers, const unsigned* dims)
{
    Geometry g;
    std::memcpy(&g, numbers, sizeof g);
    for_threads(dims, false, [=] { KERNEL((const Sample*)source, (Sample*)output, TABLE g); });
}
"""


def _table(launch: Launch) -> tuple[NDArray[Any]]:
    (table,) = launch.tables or (np.empty(0),)
    return (table,)


def _pointer(array: NDArray[Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _instructions_called(text: str) -> str:
    """Return `text` with functions of the shim in place of instructions in assembler."""
    parts, end = [], 0
    for match in re.finditer(r"\basm(?: volatile)?\(", text):
        stop = _closing(text, match.end())
        fields = list(_split(text[match.end() : stop], ":"))
        names = re.findall(r"\b([a-z]\w*(?:\.\w+)+)\b(?= )", fields[0])
        operands = [
            operand.strip().split("(", 1)[1].rsplit(")", 1)[0]
            for field in fields[1:3]
            for operand in _split(field, ",")
            if operand.strip()
        ]
        # Moves between registers belong to the instruction.
        name = next((name for name in names if not name.startswith("mov.")), None)
        call = f"{name.replace('.', '_')}({', '.join(operands)})" if name else "(void)0"
        parts += [text[end : match.start()], call]
        end = stop + 1
    return "".join([*parts, text[end:]])


def _closing(text: str, start: int) -> int:
    """Return where the bracket closes that was opened before `start`."""
    depth, quoted = 1, False
    for at in range(start, len(text)):
        quoted ^= text[at] == '"'
        if not quoted:
            depth += (text[at] in _OPENING) - (text[at] in _CLOSING)
        if depth == 0:
            return at
    raise AssertionError("a bracket is not closed")


def _split(text: str, mark: str) -> Iterator[str]:
    """Yield the parts of `text` between marks outside brackets and quotes."""
    depth, quoted, start = 0, False, 0
    for at, character in enumerate(text):
        quoted ^= character == '"'
        if quoted:
            continue
        depth += (character in _OPENING) - (character in _CLOSING)
        if character == mark and depth == 0:
            yield text[start:at]
            start = at + 1
    yield text[start:]
