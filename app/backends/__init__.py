"""*Where* a filter runs."""

from __future__ import annotations

from app.backends.cpu import CpuBackend
from app.backends.cuda import CudaBackend
from app.engine.backend import Backend


def create_backends() -> dict[str, Backend]:
    """Return the backends of this program by id, the fastest kind first."""
    backends: tuple[Backend, ...] = (CudaBackend(), CpuBackend())
    return {backend.id: backend for backend in backends}
