"""Border ``keep`` on a GPU: the launch that follows a filter's own and puts its rim back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kernelscope.schema.borders import Border
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.launch import CudaPlan, CudaTask, Launch
from kernelscope.schema.samples import Kind

SOURCE = "rim"  # the ``.cu`` that has the kernel

KERNEL = "rim_keep"

_BLOCK, _TILE = (256, 4), (2048, 32)  # few blocks: most pixels are not touched


def keep_rim(task: CudaTask, radius: int) -> Launch:
    """Return the launch that copies the pixels within `radius` of an edge from the source."""
    height, width = task.shape[:2]
    inside = max(0, height - 2 * radius) * max(0, width - 2 * radius)
    share = 1 - inside / (height * width)
    return Launch(
        kernel=KERNEL,
        defines={"SAMPLE_BITS": str(8 * task.dtype.itemsize)},
        block=_BLOCK,
        tile=_TILE,
        bytes_per_sample=2 * task.dtype.itemsize * share,
        operations_per_sample=share,
        constants={"constant_rim": np.array([radius, task.output_shape[2]], np.int32)},
    )


def with_rim(spec: FilterSpec, task: CudaTask, plan: CudaPlan) -> tuple[CudaPlan, list[str]]:
    """Return a plan that leaves the rim right, and the ``.cu`` of each of its launches.

    The kernels of volumes keep theirs themselves.
    """
    files, radius = [spec.id] * len(plan.launches), spec.radius(task.parameters)
    if task.border is not Border.KEEP or not radius or spec.kind is Kind.VOLUME:
        return plan, files
    return replace(plan, launches=(*plan.launches, keep_rim(task, radius))), [*files, SOURCE]
