"""Volume non-local means: every plan is one that any card can run, and its kernels compile."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kernelscope.backends.cuda.compiler import CubinCache, resources
from kernelscope.backends.cuda.executor import _prepare
from kernelscope.backends.cuda.sources import read_source
from kernelscope.filters import volume_collaborative, volume_dct
from kernelscope.filters.mri_nlm import SPEC
from kernelscope.filters.mri_nlm.cuda import plan_mri_nlm
from kernelscope.schema.borders import Border
from kernelscope.schema.launch import Cuda, CudaPlan, CudaTask, Launch
from tests.backends.specialisations import assert_modules_have_one_value
from tests.pairs import together

pytestmark = pytest.mark.slow

SHAPE = (130, 157, 189)
LEVELS = SPEC.levels("gpu")
SHARED_BYTES = 48 * 1024
"""Shared memory of a block on every GPU."""

MOST_SHARED_BYTES = 99 * 1024
"""Shared memory of a block on GPUs since Ampere, on request."""

THREADS = 256
FEW_BYTES = 64


def plan(
    level: str,
    components: int,
    *,
    block: tuple[int, int] | None = None,
    width: int = SHAPE[2],
    **parameters: Any,
) -> CudaPlan:
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
    shape = (*SHAPE[:2], width, components)
    return plan_mri_nlm(
        CudaTask(shape, shape, np.dtype(np.float32), values, Border.REFLECT, level, block)
    )


def every_plan() -> list[CudaPlan]:
    changes: tuple[dict[str, Any], ...] = ({}, {"dimensions": "2d"}, {"sigma_from": "local"})
    return [
        plan(level.id, components, search_radius=search, patch_radius=patch, **more)
        for level, components, search, patch in itertools.product(
            LEVELS, (1, 2, 3, 4), (1, 4, 7, (5, 7, 2)), (1, 2, 3, 4, 5, (2, 3, 1))
        )
        for more in changes
    ]


def test_launches_that_share_a_module_agree_on_its_constants() -> None:
    for made in every_plan():
        assert_modules_have_one_value(made)
    for spec in (volume_dct.SPEC, volume_collaborative.SPEC):
        values = spec.validate({"sigma_from": "given", "sigma": (20.0,)})
        for level, components, noise in itertools.product(
            spec.levels("gpu"), (1, 3), ("rician", "gaussian")
        ):
            shape = (12, 15, 17, components)
            parameters = {**values, "noise": noise}
            task = CudaTask(
                shape, shape, np.dtype(np.float32), parameters, Border.REFLECT, level.id
            )
            assert_modules_have_one_value(CudaPlan.of(spec.implementation(Cuda).plan(task)))


def test_every_plan_fits_every_card() -> None:
    for made in every_plan():
        for launch in made.launches:
            large = launch.kernel == "mri_nlm_shared" and max(radii(launch)[1]) > 3
            assert launch.shared_bytes <= (MOST_SHARED_BYTES if large else SHARED_BYTES)
            assert np.prod(launch.block) <= THREADS
            assert launch.tile is not None
            assert min(launch.tile) >= 1
            assert set(launch.scratch) <= set(made.scratch)


def test_the_steps_are_all_rows_of_offsets() -> None:
    for made in every_plan():
        launch = made.launches[-1]
        (_, y, z), _ = radii(launch)
        rows = int(launch.constants["search"][3])
        assert (z == 0) == (launch.defines["DIMENSIONS"] == "2")
        assert 1 <= rows <= 2 * y + 1
        assert launch.steps == -(-(2 * y + 1) // rows) * (2 * z + 1)


def radii(launch: Launch) -> tuple[Sequence[int], Sequence[int]]:
    """Return the radii of search windows and patches along x, y and z."""
    patch = [int(launch.defines[f"PATCH_{axis}"]) for axis in "XYZ"]
    return launch.constants["search"][:3].tolist(), patch


@together(
    ("components", "patch", "fits"), [(4, 3, True), (1, 5, True), (3, 4, True), (3, 5, False)]
)
def test_what_does_not_fit_tuned_runs_at_level_global(
    components: int, patch: int, fits: bool
) -> None:
    made = plan("tuned", components, patch_radius=patch, search_radius=3)
    assert made.launches[-1].kernel == ("mri_nlm_tuned" if fits else "mri_nlm_global")
    assert bool(made.notice) is not fits
    assert not plan("global", components, patch_radius=patch).notice


@pytest.mark.parametrize(("kibibytes", "level"), [(227, "tuned"), (99, "shared")])
def test_cards_with_less_shared_memory_run_volume_collaborative_at_level_shared(
    kibibytes: int, level: str
) -> None:
    card: Any = SimpleNamespace(
        attribute={"MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": kibibytes * 1024}.__getitem__,
        architecture="sm_86",
        has_loaded=lambda cubin: True,
        function=lambda cubin, kernel: (None, SimpleNamespace(shared_size_bytes=0)),
        resident_blocks=lambda *_: 1,
    )
    cubins: Any = SimpleNamespace(get=lambda *_: b"")
    values = volume_collaborative.SPEC.validate({"sigma_from": "given", "sigma": (20.0,)})
    shape = (12, 15, 17, 1)
    task = CudaTask(shape, shape, np.dtype(np.float32), values, Border.REFLECT, "tuned")
    made = _prepare(volume_collaborative.SPEC, task, card, cubins).plan
    assert made.launches[1].kernel.startswith(f"volume_collaborative_{level}")
    assert made.shared_bytes <= kibibytes * 1024
    assert ("level shared is used" in made.notice) is (level == "shared")


@pytest.mark.parametrize("block", [(16, 16), (14, 18), (14, 14)])
def test_a_block_that_is_asked_for(block: tuple[int, int]) -> None:
    for level in ("global", "shared"):
        pad, main = plan(level, 1, block=block).launches
        assert pad.block == main.block == main.tile == (*block, 1)
    assert plan("tuned", 1, block=block).launches[0].block == plan("tuned", 1).launches[0].block


def test_each_axis_has_its_radii() -> None:
    pad, main = plan("shared", 1, search_radius=(5, 4, 2), patch_radius=(3, 2, 1)).launches
    assert radii(main) == radii(pad) == ([5, 4, 2], [3, 2, 1])
    cells = 7 * 5 * 3
    assert main.constants["strength"] == np.float32(1 / (2 * cells))
    depth, height, width = SHAPE
    padded = plan("shared", 1, search_radius=(5, 4, 2), patch_radius=(3, 2, 1)).scratch["padded"]
    assert padded.size(depth, depth) == 4 * (depth + 6) * (height + 12) * (width + 16)
    flat: dict[str, Any] = {
        "search_radius": (5, 4, 2),
        "patch_radius": (3, 2, 1),
        "dimensions": "2d",
    }
    assert radii(plan("global", 1, **flat).launches[-1]) == ([5, 4, 0], [3, 2, 0])


def test_each_component_has_its_sigma() -> None:
    one, each = plan("tuned", 3), plan("tuned", 3, sigma=(20.0, 15.0, 30.0))
    np.testing.assert_array_equal(one.launches[0].tables[0], [20, 20, 20])
    np.testing.assert_array_equal(each.launches[0].tables[0], [20, 15, 30])


@together(
    ("width", "components", "search", "lined"),
    [(189, 1, 5, True), (189, 3, 5, True), (5, 1, 7, True), (60, 1, 5, True), (189, 4, 7, False)],
)
def test_rows_of_tiles_share_a_line_where_there_is_room(
    width: int, components: int, search: int, lined: bool
) -> None:
    patch = 1 if lined else 2
    main = plan(
        "tuned", components, search_radius=search, patch_radius=patch, width=width
    ).launches[-1]
    across, down, deep = main.grid((*SHAPE[:2], width, components))
    assert main.tile is not None
    rows = -(-SHAPE[1] // main.tile[1])
    assert int(main.constants["line"]) == (width + 2 * patch if lined else 0)
    assert down == (1 if lined else rows)
    assert deep == -(-SHAPE[0] // main.tile[2])
    if lined:  # one block less would not reach the last voxel
        voxels = rows * (width + 2 * patch) - 2 * patch
        assert (across - 1) * main.tile[0] < voxels <= across * main.tile[0]


def test_local_sigma_is_a_launch_of_its_own() -> None:
    noise, pad, means = plan("tuned", 2, sigma_from="local").launches
    assert noise.kernel == "mri_nlm_sigma"
    assert pad.kernel == "mri_nlm_pad"  # each voxel scales its own distances
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
    (1, {"patch_radius": 5}),
    (3, {"patch_radius": 5}),
    (2, {"patch_radius": (1, 2, 4)}),
]
"""Components and parameters: together every value of each macro."""

LONGEST = (CHOICES[7], CHOICES[8])
"""Which only combine values of others, or have more of the same code."""


@pytest.mark.parametrize(
    ("components", "parameters", "architecture"),
    # The architectures take turns: both for each choice would take a minute more.
    [
        pytest.param(
            *choice,
            ("sm_75", "sm_90")[number % 2],
            marks=pytest.mark.exhaustive if choice in LONGEST else (),
        )
        for number, choice in enumerate(CHOICES)
    ],
)
def test_compiles(
    components: int,
    parameters: dict[str, Any],
    architecture: str,
    compiler: CubinCache,
    quick_nvrtc: CubinCache,
) -> None:
    defines, *others = (
        plan(level.id, components, **parameters).launches[-1].defines for level in LEVELS
    )
    assert others == [defines] * len(others)  # the levels share a cubin
    # Large patches of several components do not fit into registers.
    patch = parameters.get("patch_radius", 1)
    fits = patch == 1 or (components == 1 and patch in (2, 3))
    nvrtc = compiler if fits else quick_nvrtc
    cubin = nvrtc.get("mri_nlm", read_source("mri_nlm"), architecture, defines)
    assert cubin.code.startswith(b"\x7fELF")
    assert "warning" not in cubin.log, cubin.log
    report = resources(cubin.log, "mri_nlm_tuned")
    if defines["TUNED"] == "0":
        assert report is None
        return
    assert report is not None
    if fits:
        # The 256 values of four components are a few more than there are registers.
        assert report.spill_bytes <= (FEW_BYTES if components < 4 else 3 * FEW_BYTES)


def test_compiles_on_its_own(quick_nvrtc: CubinCache) -> None:
    """The defaults of all macros make a whole program of it."""
    assert quick_nvrtc.get("mri_nlm", read_source("mri_nlm"), "sm_75", {}).code
