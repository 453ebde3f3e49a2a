"""*Where* a filter runs: the processor, CUDA GPUs, or a GPU that the processor emulates."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kernelscope.base.errors import InvalidParameter

if TYPE_CHECKING:
    from kernelscope.engine.backend import Backend

GPU_VARIABLE = "KERNELSCOPE_GPU"
"""Environment variable with the number of the GPU to use, or several: ``0,1``."""


def create_backends(
    gpus: Sequence[int] | None = None, *, emulated: bool = False
) -> dict[str, Backend]:
    """Return the backends of this program by id, the fastest kind first.

    - `gpus`: numbers of the GPUs; by default those of `GPU_VARIABLE`, or the first one.
    - `emulated`: have the emulated GPU as well.

    Raises `InvalidParameter` if the variable has anything but numbers.
    """
    # Each is a package of its own, and a module of one of them needs none of the others.
    from kernelscope.backends.cpu import CpuBackend
    from kernelscope.backends.cuda import CudaBackend
    from kernelscope.backends.emulator import EmulatorBackend

    if gpus is None:
        gpus = usual_gpus()
    backends: tuple[Backend, ...] = (CudaBackend(gpus), CpuBackend())
    if emulated:
        backends += (EmulatorBackend(),)
    return {backend.id: backend for backend in backends}


def usual_gpus() -> tuple[int, ...]:
    """Return the numbers in `GPU_VARIABLE`, or the first GPU.

    Raises `InvalidParameter` if the variable has anything but numbers.
    """
    try:
        return gpu_numbers(os.environ.get(GPU_VARIABLE) or "0")
    except ValueError as error:
        raise InvalidParameter(f"{GPU_VARIABLE}: {error}.") from None


def gpu_numbers(text: str) -> tuple[int, ...]:
    """Read numbers of GPUs: ``0``, ``0,1``.

    Raises `ValueError` if the text is not a list of numbers, or names a GPU twice.
    """
    names = [name.strip() for name in text.split(",")]
    if not all(name.isdecimal() for name in names):
        raise ValueError(f"“{text}” is not the number of a GPU, or several like 0,1")
    numbers = tuple(map(int, names))
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"“{text}” names a GPU twice")
    return numbers
