"""Plans and compiler reports of kernels before they run; needs no GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat

from kernelscope.backends.cuda.compiler import Compiler, CubinCache, Nvrtc, resources, title
from kernelscope.backends.cuda.sources import read_source
from kernelscope.base.errors import AppError
from kernelscope.base.installed import pip_command
from kernelscope.engine.request import Request
from kernelscope.engine.timing import Resources
from kernelscope.schema.launch import Launch, planned
from kernelscope.schema.levels import Level

REPORTED = ("sm_75", "sm_90")
"""The oldest generation that the kernels are made for, and a recent one: Turing and Hopper."""


class NoCompiler(AppError):
    """NVRTC is not installed."""


@dataclass(frozen=True)
class PlannedLaunch:
    """How a filter is going to be launched."""

    launch: Launch
    grid: tuple[int, ...]  # blocks in x and y (and z) over the whole output
    notice: str = ""  # how this differs from the request, where it does


def plans(request: Request, level: Level) -> tuple[PlannedLaunch, ...]:
    """Return every kernel of its filter that `request` would launch at a GPU level, in order.

    The kernel that puts the rim back for border ``keep`` belongs to no filter and is left out.
    """
    shape = request.source.planes.shape
    *before, (spec, parameters, border) = request.passes()
    for each in before:
        shape = each.filter.output_shape(shape, each.parameters, each.border)
    dtype, block = request.source.pixels.dtype, request.options.block
    task, made = planned(spec, shape, dtype, parameters, border, level.id, block)
    grids = (each.grid(task.output_shape) for each in made.launches)
    return tuple(map(PlannedLaunch, made.launches, grids, repeat(made.notice)))


def plan(request: Request, level: Level) -> PlannedLaunch:
    """Return the one of `plans` that does most of the work."""
    return max(plans(request, level), key=lambda each: each.launch.operations_per_sample)


def compile_report(
    filter_id: str,
    launch: Launch,
    compiler: Compiler | None = None,
    architectures: Sequence[str] = REPORTED,
) -> dict[str, Resources | None]:
    """Compile a kernel and return the assembler's report for each architecture.

    Takes a second or more the first time: call it off the GUI thread.

    Raises `NoCompiler` if NVRTC is not installed; `AppError` if NVRTC does not compile the kernel.
    """
    compiler = compiler or nvrtc()
    cache = CubinCache(compiler)
    source = read_source(filter_id)
    return {
        architecture: resources(
            cache.get(filter_id, source, architecture, launch.defines).log, launch.kernel
        )
        for architecture in architectures
    }


def reporter() -> str:
    """Return which compiler `compile_report` asks."""
    try:
        return title(nvrtc())
    except AppError:
        return Nvrtc.name


def nvrtc() -> Compiler:
    """Return NVRTC; raise `NoCompiler` if it is not installed."""
    compiler = Nvrtc()
    try:
        compiler.version()
    except Exception as error:  # whatever the loader of a missing library raises
        raise NoCompiler(
            "The report needs NVRTC, NVIDIA's run-time compiler.",
            "Install it, also without a GPU: " + pip_command("cuda-bindings", "nvidia-cuda-nvrtc"),
        ) from error
    return compiler
