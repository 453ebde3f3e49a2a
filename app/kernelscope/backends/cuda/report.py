"""Reports of a run on its kernels: launch geometry, resources, occupancy and rates."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kernelscope.backends.cuda.card import GpuContext
from kernelscope.backends.cuda.compiler import Cubin, resources
from kernelscope.backends.cuda.device_run import DeviceRun, PreparedFilter
from kernelscope.engine.launch_report import LaunchReport
from kernelscope.engine.timing import NOTABLE_EXCESS, Metric
from kernelscope.schema.launch import Launch


def metrics(runs: Sequence[DeviceRun]) -> list[Metric]:
    """Return the metrics of all launches, of devices that worked at the same time.

    Rates of kernels are left out where the time of the kernels is an upper bound.
    """
    seconds = max(1e-9, *(run.kernel_seconds for run in runs))
    found = []
    if not any(run.excess > NOTABLE_EXCESS * run.kernel_seconds for run in runs):
        done = sum(run.kernel_bytes for run in runs), sum(run.kernel_operations for run in runs)
        found = [
            Metric("effective rate", done[0] / seconds, "B/s"),
            Metric("arithmetic rate", done[1] / seconds, "op/s"),
        ]
    batch = max(runs, key=lambda run: run.kernel_seconds).batch
    if batch > 1:
        found.append(Metric("batch", batch, "launches"))
    devices = [run.device for run in runs]
    for name, rates, unit in (
        ("copy rate", [_copy_rate(device) for device in devices], "B/s"),
        ("peak rate", [device.peak_rate for device in devices], "op/s"),
    ):
        known = [rate for rate in rates if rate is not None]
        if len(known) == len(rates):
            found.append(Metric(name, sum(known), unit))
    return found


def _copy_rate(device: GpuContext) -> float | None:
    """Return `GpuContext.copy_rate`; once it is known, its thread has no part in it."""
    return device.known_copy_rate or device.call(device.copy_rate)


def launch_report(
    step: PreparedFilter,
    launch: Launch,
    cubin: Cubin,
    grid: tuple[int, ...],
    block: tuple[int, int, int],
    run: DeviceRun,
) -> LaunchReport:
    """Return how a kernel was launched, in blocks of `block`, with the compiler's report."""
    device, threads = run.device, math.prod(block)
    most = device.attribute("MAX_THREADS_PER_MULTIPROCESSOR")
    blocks = device.resident_blocks(cubin, launch.kernel, threads, launch.shared_bytes)
    return LaunchReport(
        step.spec.id,
        launch.kernel,
        grid,
        block[: len(launch.block)],
        launch.shared_bytes,
        resources(cubin.log, launch.kernel),
        None if blocks is None else blocks * threads / most,
        cubin.compiler or run.cache.title,
    )
