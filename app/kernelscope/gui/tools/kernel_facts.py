"""Facts about kernels for tables: their launches, and the resources that they need."""

from __future__ import annotations

from kernelscope.backends.cuda.info import architecture
from kernelscope.backends.cuda.inspection import PlannedLaunch
from kernelscope.engine.backend import Fact, FactGroup
from kernelscope.engine.launch_report import LaunchReport, Resources
from kernelscope.engine.request import Request

LAST_RUN = "Last run on the GPU"


def with_generation(target: str) -> str:
    """Return ``sm_75 (Turing)`` for ``sm_75``."""
    digits = target.removeprefix("sm_")
    return f"{target} ({architecture((int(digits[:-1]), int(digits[-1])))})"


def last_run(report: LaunchReport) -> FactGroup:
    return FactGroup(
        LAST_RUN,
        (
            Fact("Grid", _by(report.grid), "blocks"),
            Fact("Block", _by(report.block), "threads"),
            Fact("Dynamic shared memory", f"{report.shared_bytes:,}", "bytes a block"),
            *(resources(report.resources) if report.resources else ()),
            *_occupancy(report.occupancy),
            *((Fact("Compiled by", report.compiler),) if report.compiler else ()),
        ),
    )


def _occupancy(occupancy: float | None) -> tuple[Fact, ...]:
    if occupancy is None:
        return ()
    return (Fact("Theoretical occupancy", f"{occupancy:.0%}"),)


def planned(plan: PlannedLaunch, request: Request) -> FactGroup:
    launch = plan.launch
    source = request.source
    size = "×".join(str(side) for side in source.shape[-2::-1])
    tile = "strides over all" if launch.tile is None else _by(launch.tile)
    return FactGroup(
        f"Launch for {size}, {source.mode}",
        (
            Fact("Kernel", launch.kernel),
            Fact("Grid", _by(plan.grid), "blocks"),
            Fact("Block", _by(launch.block), "threads"),
            Fact("Output of a block", tile, "" if launch.tile is None else "pixels"),
            Fact("Dynamic shared memory", f"{launch.shared_bytes:,}", "bytes a block"),
            *(
                Fact(f"{name} in constant memory", f"{values.nbytes:,}", "bytes")
                for name, values in launch.constants.items()
            ),
            *(
                Fact(f"Table {number} in global memory", f"{table.nbytes:,}", "bytes")
                for number, table in enumerate(launch.tables, 1)
            ),
            Fact("Reads the image through", "a texture" if launch.texture else "global memory"),
            Fact("Least traffic", _plain(launch.bytes_per_sample), "bytes a sample"),
            Fact("Arithmetic", _plain(launch.operations_per_sample), "operations a sample"),
        ),
    )


def resources(resources: Resources) -> tuple[Fact, ...]:
    """Return the facts of an assembler's report."""
    constant = Fact("Constant bank", f"{resources.constant_bytes:,}", "bytes")
    return (
        Fact("Registers", str(resources.registers), "a thread"),
        Fact("Spilled registers", f"{resources.spill_bytes:,}", "bytes a thread"),
        Fact("Stack", f"{resources.stack_bytes:,}", "bytes a thread"),
        Fact("Static shared memory", f"{resources.shared_bytes:,}", "bytes a block"),
        *((constant,) if resources.constant_bytes else ()),  # newer assemblers do not report it
    )


def _plain(number: float) -> str:
    """Return a number of four digits or more, never with an exponent."""
    return f"{number:,.0f}" if number >= 1000 else f"{number:.4g}"


def _by(sizes: tuple[int, ...]) -> str:
    return " × ".join(f"{size:,}" for size in sizes)
