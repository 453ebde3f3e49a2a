"""Level *tuned* on the emulated GPU, where pictures and volumes of the contract do not reach."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.ndimage import median_filter

from kernelscope.backends.cpu import CpuBackend
from kernelscope.backends.emulator import EmulatorBackend
from kernelscope.engine.context import RunContext
from kernelscope.engine.request import Request
from kernelscope.filters import collaborative, mri_nlm, sliding_dct
from kernelscope.filters.collaborative.model import numbers
from kernelscope.filters.median import cuda
from kernelscope.filters.shared.noise_model import NoiseKind, NoiseModel
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume
from kernelscope.schema import launch
from kernelscope.schema.borders import Border
from kernelscope.schema.launch import planned
from kernelscope.schema.levels import SERIAL, TUNED
from tests.backends.emulated import needs_compiler
from tests.backends.quick_compiler import QuickCompiler
from tests.contract.test_volumes import assert_close, make, run
from tests.filters import test_median, test_sliding_dct
from tests.pairs import in_turn, together

pytestmark = pytest.mark.slow


# --- collaborative filtering: keys of bytes, and stacks of 32 in the first stage ---


@needs_compiler
@pytest.mark.parametrize(("sigma", "channels"), [(8.0, 3), (20.0, 1)])
def test_tuned_has_the_bytes_of_the_processor(sigma: float, channels: int) -> None:
    """Also where many blocks differ by nothing: of those the upper left ones count.

    Each plane of colours has a spectrum of its own.
    """
    random = np.random.default_rng(channels)
    source = random.integers(0, 256, (20, 30, channels), dtype=np.uint8)
    source[:, :16] = 90
    values = {"sigma": sigma, "setting": "fast", "noise": "correlated"}
    request = Request.create(
        Image.from_array(source), collaborative.SPEC.id, collaborative.SPEC.validate(values)
    )
    spectra = random.uniform(0.01, 2, (channels, 8, 8))
    model = NoiseModel(NoiseKind.CORRELATED, (0.1,) * channels, spectra=spectra)
    request = replace(request, noise=model)
    cpu, emulator = CpuBackend(threads=1), EmulatorBackend(QuickCompiler.find(), threads=1)
    wanted = cpu.run(request, cpu.levels(collaborative.SPEC)[-1], RunContext()).planes
    for level in emulator.levels(collaborative.SPEC):
        made = emulator.run(request, level, RunContext())
        np.testing.assert_array_equal(made.planes, wanted, err_msg=level.id)
    cpu.close()
    emulator.close()


@together(
    ("dtype", "sigma", "kernel"),
    [
        (np.uint8, 8.0, "tuned"),
        (np.uint8, 39.6, "tuned"),
        (np.uint8, 39.8, "shared"),
        (np.uint16, 8.0, "shared"),
        (np.float32, 8.0, "shared"),
    ],
)
def test_differences_fit_into_the_keys_of_bytes(dtype: type, sigma: float, kernel: str) -> None:
    values = collaborative.SPEC.validate({"sigma": sigma, "noise": "white"})
    kind = np.dtype(dtype)
    _, plan = planned(collaborative.SPEC, (64, 64, 1), kind, values, Border.REFLECT, TUNED.id)
    matches = [each.kernel for each in plan.launches if each.kernel.endswith("_match")]
    assert matches == [f"collaborative_{kernel}_match"] * 2
    found = numbers(kind, 1, values)
    assert found is not None
    assert (kernel == "tuned") == (dtype is np.uint8 and max(found.tolerances) < 2**21)


# --- median: rows, shared columns, networks, and the planes behind them ---


DTYPES = ("uint8", "uint16", "float32")


def hostile(dtype: str, shape: tuple[int, int]) -> NDArray[Any]:
    """Return noise of which two fifths are the smallest and the largest value."""
    random = np.random.default_rng(shape[1])
    white = 1.0 if dtype == "float32" else float(np.iinfo(dtype).max)
    values = random.random(shape)
    values[random.random(values.shape) < 0.2] = 0
    values[random.random(values.shape) < 0.2] = 1
    return (values * white).astype(dtype)


def assert_equals_scipy(
    emulator: EmulatorBackend, pixels: NDArray[Any], size: int, border: Border
) -> None:
    request = Request.create(Image.from_array(pixels), "median", {"size": size}, border=border)
    actual = emulator.run(request, TUNED, RunContext()).planes[:, :, 0]
    np.testing.assert_array_equal(actual, median_filter(pixels, size, mode=border.value))


@pytest.mark.parametrize(("dtype", "size"), in_turn(DTYPES, (11, 13, 15, 17), every=3))
def test_large_masks_equal_scipy(
    emulator: EmulatorBackend, monkeypatch: pytest.MonkeyPatch, dtype: str, size: int
) -> None:
    """300 columns: whole quads inside the picture, and tiles at all four sides."""
    monkeypatch.setattr(launch, "BY_SIZE", False)
    assert_equals_scipy(emulator, hostile(dtype, (44, 300)), size, Border.MIRROR)


@pytest.mark.parametrize(("dtype", "size"), in_turn(DTYPES, (5, 7, 9, 11), every=3))
def test_shared_columns_equal_scipy(
    emulator: EmulatorBackend, monkeypatch: pytest.MonkeyPatch, dtype: str, size: int
) -> None:
    """Two blocks and a part of one side by side: their ends read columns of each other's."""
    monkeypatch.setattr(launch, "BY_SIZE", False)
    for shape in ((23, 1100), (9, 1021), (5, 8)):
        assert_equals_scipy(emulator, hostile(dtype, shape), size, Border.MIRROR)


@pytest.mark.parametrize(
    ("by_size", "border"),
    in_turn((False, True), (Border.MIRROR, Border.CONSTANT, Border.WRAP), every=2),
)
def test_grey_bytes_equal_scipy(
    emulator: EmulatorBackend, monkeypatch: pytest.MonkeyPatch, by_size: bool, border: Border
) -> None:
    """Down the rows, and the shape for small pictures; of 1021 columns another kernel."""
    monkeypatch.setattr(launch, "BY_SIZE", by_size)
    for shape in ((23, 1100), (9, 1021), (7, 8), (3, 4), (2, 4)):
        assert_equals_scipy(emulator, hostile("uint8", shape), 3, border)


# --- median of large masks of bytes, which counts with 32 thresholds at once ---


def pictures(shape: tuple[int, int]) -> dict[str, NDArray[np.uint8]]:
    random = np.random.default_rng(0)
    rows, columns = np.indices(shape)
    both = rows + columns
    patches = random.integers(0, 256, (shape[0] // 12 + 1, shape[1] // 12 + 1))
    floats: dict[str, Any] = {
        "black": 0 * both,
        "grey": 0 * both + 77,
        "white": 0 * both + 255,
        "checkerboard": 255 * (both % 2),
        "two values": 255 * random.integers(0, 2, shape),
        "ramp": columns % 256,
        "steep": 9 * both % 256,
        "noise": random.integers(0, 256, shape),
        "dark": random.integers(0, 12, shape),
        "bright": random.integers(244, 256, shape),
        "patches": np.kron(patches, np.ones((12, 12)))[: shape[0], : shape[1]],
    }
    return {name: values.astype(np.uint8) for name, values in floats.items()}


def assert_right(
    emulator: EmulatorBackend, pixels: NDArray[np.uint8], size: int, border: Border, name: str
) -> None:
    request = Request.create(Image.from_array(pixels), "median", {"size": size}, border=border)
    run = emulator.run(request, TUNED, RunContext())
    source = pixels.reshape(*pixels.shape[:2], -1)
    expected = test_median.oracle(source, {"size": size}, border)
    np.testing.assert_array_equal(run.planes, expected, err_msg=f"{name}, {size}, {border}")


@pytest.mark.parametrize(
    ("size", "border"),
    [
        (13, Border.REDUCE),
        (15, Border.REFLECT),
        (17, Border.VALID),
        (19, Border.WRAP),
        (21, Border.CONSTANT),
        (31, Border.NEAREST),
    ],
)
def test_every_picture_is_right(
    emulator: EmulatorBackend, monkeypatch: pytest.MonkeyPatch, size: int, border: Border
) -> None:
    """67 columns: no whole words of four; strips that end outside of the picture."""
    monkeypatch.setattr(launch, "BY_SIZE", False)
    for name, pixels in [*pictures((45, 67)).items()][size // 2 % 2 :: 2]:
        assert_right(emulator, pixels, size, border, name)


@pytest.mark.parametrize(
    ("border", "names"),
    [(Border.MIRROR, ("noise", "steep")), (Border.REDUCE, ("patches", "two values"))],
)
def test_blocks_inside_the_picture_and_short_strips(
    emulator: EmulatorBackend,
    monkeypatch: pytest.MonkeyPatch,
    border: Border,
    names: tuple[str, ...],
) -> None:
    """Of 544 x 80 pixels the block in the middle needs no border, and stores eight at once.

    Windows that are cut belong to threads of any block, which may be done before their own one.
    """
    monkeypatch.setattr(cuda, "_SMALL_THRESHOLDS", 0)
    found = pictures((80, 544))
    for name in names:
        assert_right(emulator, found[name], 13, border, name)


def test_channels_and_pictures_smaller_than_the_mask(
    emulator: EmulatorBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "BY_SIZE", False)
    random = np.random.default_rng(1)
    assert_right(
        emulator, random.integers(0, 256, (21, 40, 3), np.uint8), 13, Border.MIRROR, "colours"
    )
    assert_right(emulator, random.integers(0, 256, (3, 5), np.uint8), 31, Border.REFLECT, "tiny")


# --- MRI NLM: rows of tiles that share a line, and thin volumes ---


THIN = ((1, 1, 1), (1, 40, 3), (40, 2, 1), (2, 3, 70), (3, 5, 59), (5, 9, 31))
"""Slices of one voxel, rows and columns thinner than the halo; blocks with many turns and none."""

CASES: list[tuple[int, dict[str, Any]]] = [
    (1, {}),
    (1, {"noise": "gaussian", "search_radius": (2, 1, 3)}),
    (1, {"dimensions": "2d", "patch_radius": 2}),
    (1, {"sigma_from": "local", "window_radius": 1}),
    (2, {"sigma": (9.0, 14.0), "search_radius": (5, 2, 1)}),
    (3, {"patch_radius": (1, 2, 1)}),
    (3, {"sigma_from": "adaptive", "noise": "gaussian", "dimensions": "2d"}),
    (4, {"patch_radius": 2, "search_radius": 1}),
]


@pytest.mark.parametrize(("components", "changes"), CASES)
def test_thin_volumes_equal_those_of_the_processor(
    components: int, changes: dict[str, Any], emulator: EmulatorBackend
) -> None:
    parameters = {"search_radius": 2, "sigma_from": "given", "sigma": (20.0,), "beta": 1.0}
    for shape in THIN[CASES.index((components, changes)) % 2 :: 2]:
        voxels = make(shape, components)
        scan = Scan(
            tuple(
                Volume.from_array(np.ascontiguousarray(voxels[..., c])) for c in range(components)
            )
        )
        request = Request.create(scan, mri_nlm.SPEC.id, {**parameters, **changes})
        wanted = run(mri_nlm.SPEC.id, voxels, {**parameters, **changes}, SERIAL.id)
        actual = emulator.run(request, TUNED, RunContext()).planes
        assert_close(actual, wanted, f"{shape}")


# --- sliding DCT: a sigma for each frequency, which small pictures do not show ---


@needs_compiler
@pytest.mark.parametrize(
    ("channels", "dtype", "border"),
    in_turn((1, 3), (np.uint8, np.float32), (Border.REFLECT, Border.VALID), every=2),
)
def test_every_frequency_has_its_own_sigma(channels: int, dtype: Any, border: Border) -> None:
    """On all levels of the CPU and of the emulated GPU, to the last bit."""
    random = np.random.default_rng(channels)
    source = random.uniform(0, 1, (41, 57, channels))
    source = np.rint(source * 255).astype(dtype) if dtype is np.uint8 else source.astype(dtype)
    spectra = random.uniform(0.01, 2, (channels, 8, 8))
    model = NoiseModel(NoiseKind.CORRELATED, (0.1,) * channels, spectra=spectra)
    values = sliding_dct.SPEC.validate({"sigma": 12.0, "noise": "correlated"})
    wanted = test_sliding_dct.oracle(source, values, border, spectra)
    if dtype is np.uint8:
        wanted = np.clip(np.rint(wanted), 0, 255).astype(np.uint8)
    request = Request.create(Image.from_array(source), "sliding_dct", values, border=border)
    request = replace(request, noise=model)
    for backend in (CpuBackend(threads=1), EmulatorBackend(QuickCompiler.find(), threads=1)):
        for level in backend.levels(sliding_dct.SPEC):
            made = backend.run(request, level, RunContext())
            np.testing.assert_array_equal(made.planes, wanted, err_msg=level.id)
        backend.close()
