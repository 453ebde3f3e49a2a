"""Run options of a step: the device, its level, and further choices.

A run's options never change its result and are never part of a recipe; `kernelscope.engine.step`
has the settings that decide the result.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernelscope.schema.blocks import Block, check_block
from kernelscope.schema.devices import Device

# `Device` is listed for scripts that the program wrote: they import it here.
__all__ = ["DEFAULT_OPTIONS", "Device", "RunOptions"]


@dataclass(frozen=True)
class RunOptions:
    """Run options of a step.

    Raises `InvalidParameter` for a block that no GPU can launch.
    """

    device: Device = Device.AUTO
    level: str | None = None
    """Identifier of a level of the device, or None for the device's fastest."""
    repeat: int = 1  # number of times a GPU repeats its kernels; the median time is reported
    memory_limit: int | None = None
    """Limit of GPU memory for images in bytes; larger ones are filtered in strips."""
    cold: bool = False
    """Empty the cache of a GPU before each repeat, so that reads from its memory are timed."""
    gpus: int | None = None  # number of chosen GPUs that may share the work; by default all
    block: Block | None = None
    """Threads of a GPU's blocks in x and y, at the levels that leave the choice to the user; by
    default the plan's."""

    def __post_init__(self) -> None:
        if self.block is not None:
            check_block(self.block)

    @property
    def is_usual(self) -> bool:
        limits = self.memory_limit, self.gpus, self.block
        return limits == (None, None, None) and not self.cold


DEFAULT_OPTIONS = RunOptions()
"""The device and the level that are expected to be the fastest, without repeats."""
