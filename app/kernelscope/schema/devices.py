"""The devices that filters run on; each backend has the name of one."""

from __future__ import annotations

from enum import StrEnum


class Device(StrEnum):
    """The device on which the user wants a filter to run."""

    AUTO = "auto"
    CPU = "cpu"
    GPU = "gpu"
    EMULATED = "emulated"
    """The kernels of the GPU on the processor; Auto never chooses it."""
