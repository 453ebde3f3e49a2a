"""*Where* a filter runs."""

from __future__ import annotations

import os

from app.backends.cpu import CpuBackend
from app.backends.cuda import CudaBackend
from app.engine.backend import Backend
from app.errors import InvalidParameter

GPU_VARIABLE = "KERNELSCOPE_GPU"
"""Environment variable with the number of the GPU to use."""


def create_backends(gpu: int | None = None) -> dict[str, Backend]:
    """Return the backends of this program by id, the fastest kind first.

    Parameters
    ----------
    gpu : int, optional
        Number of the GPU; by default what `GPU_VARIABLE` says, or the first one.

    Raises
    ------
    InvalidParameter
        If the variable is no number.
    """
    if gpu is None:
        text = os.environ.get(GPU_VARIABLE) or "0"
        if not text.isdecimal():
            raise InvalidParameter(f"{GPU_VARIABLE} is “{text}”, not the number of a GPU.")
        gpu = int(text)
    backends: tuple[Backend, ...] = (CudaBackend(gpu), CpuBackend())
    return {backend.id: backend for backend in backends}
