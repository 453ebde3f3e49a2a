"""The plain loops in C compute the same as level *serial*: otherwise times mean nothing."""

from __future__ import annotations

import ctypes
import functools
import platform
import re
import subprocess
from typing import Any

import numpy as np
import platformdirs
import pytest
from numpy.typing import NDArray

from kernelscope import filters
from kernelscope.base.errors import AppError
from kernelscope.bench import peers
from kernelscope.bench.peers import plain_c as plain
from kernelscope.filters.mri_nlm.cpu import plan_cpu as plan_mri_nlm
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import CpuTask
from kernelscope.schema.levels import SERIAL
from tests.filters import apply
from tests.foreign import FOREIGN, make_foreign, posix
from tests.pairs import in_turn

pytestmark = [
    pytest.mark.skipif(not plain.compiler(), reason="there is no C compiler"),
    pytest.mark.slow,
]

CASES: list[tuple[str, dict[str, Any]]] = [
    ("mask", {"mask": ((1, 2, 1), (-2, 9, 0), (3, -7, 4)), "divisor": "one", "negative": name})
    for name in ("clip", "absolute", "offset")
]
CASES += [
    ("mask", {"mask": tuple((1, -2, 3, 4, 5) for _ in range(5)), "divisor": "sum"}),
    ("mask", {"mask": tuple((1, -2, 3, 4, 5) for _ in range(5)), "divisor": "count"}),
    ("mean", {"size": 3}),
    ("mean", {"size": 9}),
    ("weighted_mean", {"size": 5}),
    ("threshold_mean", {"size": 5, "threshold": 30}),
    ("median", {"size": 3}),
    ("median", {"size": 7}),
    ("sobel", {"form": "sum"}),
    ("sobel", {"form": "magnitude"}),
    ("sobel", {"form": "directions"}),
    *(("sobel", {"form": "single", "direction": name}) for name in ("N", "NE", "W", "SE")),
    ("sobel", {"form": "winner"}),
    ("sobel", {"form": "angle"}),
    ("laplace", {"form": "4"}),
    ("laplace", {"form": "5x5", "negative": "offset"}),
    ("rotating_mask", {}),
    ("greyscale", {}),
    ("greyscale", {"rounding": "floor"}),
    ("nlm", {"patch": 3, "search_radius": 4, "weights": "gaussian"}),
    ("nlm", {"patch": 5, "search": "image", "weights": "uniform"}),
]


def noise(dtype: type, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return noise with much black and white in it."""
    values = np.clip(np.random.default_rng(4).normal(0.5, 0.4, shape), 0, 1)
    if np.issubdtype(dtype, np.integer):
        values = np.rint(values * np.iinfo(dtype).max)
    pixels = values.astype(dtype)
    pixels.flags.writeable = False
    return pixels


def name_of(value: Any) -> str:
    return getattr(value, "__name__", str(value)[:60])


@pytest.mark.parametrize(
    ("case", "dtype"), in_turn(CASES, [np.uint8, np.uint16, np.float32], every=3), ids=name_of
)
def test_equal_to_serial(case: tuple[str, dict[str, Any]], dtype: type) -> None:
    """Compiling *serial* for a type takes a second."""
    filter_id, parameters = case
    spec = filters.get(filter_id)
    values = spec.validate(parameters)
    for height, width in ((23, 31), (2, 3), (1, 1), (30, 4)):
        source = noise(dtype, (height, width, 3 if filter_id == "greyscale" else 1))
        for border in plain.BORDERS if filter_id == "mean" else (Border.MIRROR, Border.CONSTANT):
            if border not in spec.borders:
                border = spec.borders[0]
            wanted = apply(spec, source, values, border, SERIAL.id)[..., 0]
            pixels = source if filter_id == "greyscale" else source[..., 0]
            call = plain.plain(filter_id, pixels, values, border)
            assert call is not None
            if dtype is np.float32:
                np.testing.assert_allclose(call(), wanted, rtol=2e-6, atol=1e-6)
            else:
                np.testing.assert_array_equal(call(), wanted, f"{height}×{width}, {border}")


@pytest.mark.parametrize(
    ("case", "dtype"),
    in_turn([each for each in CASES if each[0] in plain.SIDES], [np.uint8, np.float32], every=2),
    ids=name_of,
)
def test_loops_for_one_size_compute_the_same(case: tuple[str, dict[str, Any]], dtype: type) -> None:
    filter_id, parameters = case
    values = filters.get(filter_id).validate(parameters)
    pixels = noise(dtype, (23, 31))
    calls = [made(filter_id, pixels, values, Border.MIRROR) for made in (plain.plain, plain.sized)]
    any_size, one_size = (call() for call in calls if call is not None)
    np.testing.assert_array_equal(any_size, one_size)


def test_loops_for_one_size_are_of_that_size() -> None:
    """A call of another size would show that the compiler knows none."""
    pixels, three = noise(np.uint8, (23, 31)), plain.library(np.dtype(np.uint8), 3)
    five = {"size": 5}
    other = plain.plain("mean", pixels, five, Border.MIRROR, three)
    right = plain.sized("mean", pixels, five, Border.MIRROR)
    assert other is not None
    assert right is not None
    assert (other() != right()).any()


@pytest.mark.parametrize("noise_model", ["rician", "gaussian"])
@pytest.mark.parametrize("dimensions", ["3d", "2d"])
def test_volumes(noise_model: str, dimensions: str) -> None:
    spec = filters.get("mri_nlm")
    source = 100 * noise(np.float32, (5, 8, 9, 1))
    source.flags.writeable = False
    values = spec.validate(
        {
            "noise": noise_model,
            "dimensions": dimensions,
            "search_radius": 2,
            "sigma_from": "given",
            "sigma": 12.0,
        }
    )
    resolved = spec.resolve(source, values)
    output = np.empty_like(source)
    passes = plan_mri_nlm(CpuTask(source, output, resolved, Border.REFLECT, SERIAL.id))
    for sweep in passes:
        sweep.kernel(*sweep.arguments, 0, sweep.rows)
    extended, _, reach, model = passes[-1].arguments
    actual = plain.plain_mri_nlm(source, extended, reach, model)()
    np.testing.assert_allclose(actual, output, rtol=1e-6)


def test_what_c_does_not_have() -> None:
    grey = np.zeros((8, 8), np.uint8)
    assert plain.plain("mean", grey, {"size": 3}, Border.REDUCE) is None
    assert plain.plain("mean", grey, {"size": 3}, Border.VALID) is None
    assert plain.plain("mean", np.zeros((8, 8, 3), np.uint8), {"size": 3}, Border.WRAP) is None
    assert plain.plain("gaussian_noise", grey, {}, Border.REFLECT) is None
    spec = filters.get("mask")
    for weight in (0.5, 1_000_000):  # ints have room for neither
        values = spec.validate({"mask": ((weight,) * 15,) * 15})
        assert plain.plain("mask", grey, values, Border.WRAP) is None


def functions(source: str) -> dict[str, str]:
    """Return the assembly of each function of a C file, without the numbers of labels."""
    command = [plain.compiler(), *plain.FLAGS, "-S", "-x", "c", "-", "-o", "-"]
    done = subprocess.run(command, input=source, capture_output=True, text=True, check=True)
    found = re.findall(r"(?ms)^(\w+):\n(.*?)^\t\.size\t\1,", done.stdout)
    return {name: re.sub(r"\.L\w+", "", text) for name, text in found}


@pytest.mark.skipif(
    platform.system() != "Linux" or "clang" in plain.version(), reason="reads the output of gcc"
)
def test_code_of_a_filter_does_not_depend_on_the_others() -> None:
    head, *sections = re.split(r"(?m)^(?=/\* [^\n]* -{9,} \*/$)", plain.SOURCE.read_text())
    whole = functions("".join((head, *sections)))
    compared = set()
    for section in sections:
        alone = functions(head + section)
        compared |= alone.keys()
        for name, text in alone.items():
            assert text == whole[name], name
    assert compared == whole.keys()
    assert {*filters_in_c(), "gather"} <= compared


def filters_in_c() -> list[str]:
    return re.findall(r"(?m)^(?:void|int) (\w+)\(", plain.SOURCE.read_text())


def test_functions_begin_with_a_cache_line() -> None:
    """Where a function lies is then the same whatever stands before it."""
    library = plain.library(np.dtype(np.uint8))
    assert filters_in_c()
    for name in filters_in_c():
        address = ctypes.cast(library[name], ctypes.c_void_p).value
        assert address is not None, name
        assert address % 64 == 0, name


def test_a_compiler_that_fails_is_reported(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "broken.c"
    broken.write_text("int main(")
    monkeypatch.setattr(plain, "SOURCE", broken)
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda *_, **__: tmp_path)
    with pytest.raises(AppError, match=r"cannot compile broken\.c"):
        plain.library.__wrapped__(np.dtype(np.uint8))
    assert not (tmp_path / "plain").exists(), "nothing half-made stays"


_built = functools.cache(plain._compile)


@posix
@pytest.mark.parametrize("how", FOREIGN)
def test_loops_that_others_may_have_written_are_compiled_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any, how: str
) -> None:
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda *_, **__: tmp_path)
    load = plain.library.__wrapped__
    built = []
    monkeypatch.setattr(plain, "_compile", lambda flags: built.append(flags) or _built(flags))
    for _ in range(2):
        load(np.dtype(np.uint8))
    assert len(built) == 1
    (path,) = (tmp_path / "plain").iterdir()
    make_foreign(path, how, monkeypatch)
    assert load(np.dtype(np.uint8))["median"]
    assert len(built) == 2


def test_without_a_compiler_the_row_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain, "compiler", lambda: "")
    assert "compiler" in peers.discover()[plain.NAME].missing()
    assert plain.NAME not in peers.versions()
