"""Volume non-local means: every plan is one that any card can run, and its kernels compile."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from app.backends.cuda.compiler import Nvrtc, resources
from app.backends.cuda.sources import read_source
from app.filters.cuda_mri_nlm import plan_mri_nlm
from app.filters.launch import CudaPlan, CudaTask
from app.filters.mri_nlm import SPEC
from app.filters.spec import GPU_LEVELS, TUNED, Border

SHAPE = (130, 157, 189)
LEVELS = SPEC.gpu_levels
SHARED_BYTES = 48 * 1024
THREADS = 256
FEW_BYTES = 64


def plan(level: str, components: int, **parameters: Any) -> CudaPlan:
    values = {
        "dimensions": "3d",
        "search_radius": 5,
        "patch_radius": 1,
        "noise": "rician",
        "sigma_from": "given",
        "sigma": (20.0,),
        "window_radius": 1,
        "beta": 1.0,
        **parameters,
    }
    shape = (*SHAPE, components)
    return plan_mri_nlm(CudaTask(shape, shape, np.dtype(np.float32), values, Border.REFLECT, level))


def every_plan() -> list[CudaPlan]:
    return [
        plan(level.id, components, search_radius=search, patch_radius=patch, **more)
        for level, components, search, patch in itertools.product(
            LEVELS, (1, 2, 3, 4), range(1, 8), (1, 2, 3)
        )
        for more in ({}, {"dimensions": "2d"}, {"sigma_from": "local"})
    ]


def test_every_plan_fits_every_card() -> None:
    for made in every_plan():
        for launch in made.launches:
            assert launch.shared_bytes <= SHARED_BYTES
            assert np.prod(launch.block) <= THREADS
            assert launch.tile is not None
            assert min(launch.tile) >= 1
            assert set(launch.scratch) <= set(made.scratch)


def test_the_steps_are_all_rows_of_offsets() -> None:
    for made in every_plan():
        launch = made.launches[-1]
        radius, rows = map(int, launch.constants["search"])
        slices = 1 if launch.defines["DIMENSIONS"] == "2" else 2 * radius + 1
        assert 1 <= rows <= 2 * radius + 1
        assert launch.steps == -(-(2 * radius + 1) // rows) * slices


def test_each_component_has_its_sigma() -> None:
    one, each = plan("tuned", 3), plan("tuned", 3, sigma=(20.0, 15.0, 30.0))
    np.testing.assert_array_equal(one.launches[0].tables[0], [20, 20, 20])
    np.testing.assert_array_equal(each.launches[0].tables[0], [20, 15, 30])


def test_local_sigma_is_a_launch_of_its_own() -> None:
    noise, means = plan("tuned", 2, sigma_from="local").launches
    assert noise.kernel == "mri_nlm_sigma"
    assert noise.defines == means.defines  # one cubin for both
    assert not means.tables
    assert means.scratch[0] == noise.scratch[0] == "sigmas"


CHOICES: list[tuple[int, dict[str, Any]]] = [
    (1, {}),
    (1, {"noise": "gaussian", "dimensions": "2d", "sigma_from": "local"}),
    (1, {"patch_radius": 2}),
    (2, {"sigma_from": "local"}),
    (3, {}),
    (3, {"dimensions": "2d", "patch_radius": 3}),
    (4, {"noise": "gaussian"}),
    (4, {"patch_radius": 3, "sigma_from": "local"}),
]
"""Components and parameters: together every value of each macro."""


@pytest.mark.parametrize(
    ("components", "parameters", "architecture"),
    # The architectures take turns: both for each choice would take a minute more.
    [(*choice, ("sm_75", "sm_90")[number % 2]) for number, choice in enumerate(CHOICES)],
)
def test_compiles(components: int, parameters: dict[str, Any], architecture: str) -> None:
    defines, *others = (
        plan(level.id, components, **parameters).launches[-1].defines for level in LEVELS
    )
    assert others == [defines] * len(others)  # the levels share a cubin
    cubin = Nvrtc().compile("mri_nlm", read_source("mri_nlm"), architecture, defines)
    assert cubin.code.startswith(b"\x7fELF")
    assert "warning" not in cubin.log, cubin.log
    report = resources(cubin.log, "mri_nlm_tuned")
    assert report is not None
    # What large patches of several components need does not fit into registers.
    if components == 1 or parameters.get("patch_radius", 1) == 1:
        assert report.spill_bytes <= FEW_BYTES


def test_levels_that_are_missing_are_explained() -> None:
    assert TUNED in LEVELS
    assert set(SPEC.gpu_gaps) == {level.id for level in GPU_LEVELS if level not in LEVELS}


def test_compiles_on_its_own() -> None:
    """The defaults of all macros make a whole program of it."""
    assert Nvrtc().compile("mri_nlm", read_source("mri_nlm"), "sm_75", {}).code
