"""How many blocks of a kernel a multiprocessor runs at a time, as the driver computes it."""

from __future__ import annotations

import logging
from typing import Any

_logger = logging.getLogger(__name__)


def resident_blocks(code: bytes, kernel: str, threads: int, shared_bytes: int) -> int | None:
    """Return the most blocks of a kernel on a multiprocessor of the current context's device.

    None where the driver has no libraries (before CUDA 12) or refuses. PyCUDA keeps the handles of
    its functions to itself, so the driver loads the cubin once more, as a library, and unloads it
    afterwards. `threads` and dynamic shared bytes are of a block.
    """
    try:
        return _ask(code, kernel, threads, shared_bytes)
    except Exception as error:  # the bindings raise several kinds for a missing library
        _logger.debug("the driver does not know the occupancy of %s: %s", kernel, error)
        return None


def _ask(code: bytes, kernel: str, threads: int, shared_bytes: int) -> int:
    from cuda.bindings import driver

    library = _value(driver.cuLibraryLoadData(code, [], [], 0, [], [], 0))
    try:
        handle = _value(driver.cuLibraryGetKernel(library, kernel.encode()))
        most = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        if shared_bytes > 48 * 1024:
            device = _value(driver.cuCtxGetDevice())
            _value(driver.cuKernelSetAttribute(most, shared_bytes, handle, device))
        function = driver.CUfunction(int(handle))
        return int(
            _value(
                driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(function, threads, shared_bytes)
            )
        )
    finally:
        driver.cuLibraryUnload(library)


def _value(answer: tuple[Any, ...]) -> Any:
    """Return the value of a call of the driver, or raise its status."""
    status, *values = answer
    if int(status) != 0:
        raise RuntimeError(status.name)
    return values[0] if values else None
