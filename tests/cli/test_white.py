"""Black and white of float pictures and volumes: one notion in every face, given or found."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from numpy.typing import NDArray

import kernelscope as ks
from kernelscope.base.errors import InvalidParameter
from kernelscope.files import read_image
from kernelscope.files.volumes import read_volume, write_volume
from kernelscope.images.levels import given_levels, own_levels, with_levels
from kernelscope.images.volume import Volume
from kernelscope.schema.samples import Kind
from tests.cli.running import refused, run

pytestmark = pytest.mark.usefixtures("closed_session")

FLOATS = np.linspace(0, 510, 24 * 20, dtype=np.float32).reshape(24, 20)
SIGNED = {
    "int8": (-100, 27),
    "int16": (-1000, 3000),
    "int32": (-70_000, 90_000),
    "float32": (-2.5, 7.5),
}
RECIPE = '{{"format": "kernelscope recipe", "version": 3, "steps": [{{"filter": "{}"}}]}}'


def picture(name: str, samples: NDArray[Any]) -> None:
    tifffile.imwrite(name, samples, photometric="minisblack")


def signed(dtype: str, shape: tuple[int, ...] = (3, 12, 10)) -> NDArray[Any]:
    low, high = SIGNED[dtype]
    samples = np.linspace(low, high, math.prod(shape)).reshape(shape)
    return samples.astype(dtype) if dtype == "float32" else np.rint(samples).astype(dtype)


def by_apply(filter_id: str, source: str, target: str, more: str = "") -> None:
    run(f"apply {filter_id.replace('_', '-')} {source} {target} --quiet {more}")


def by_batch(filter_id: str, source: str, target: str, more: str = "") -> None:
    Path("r.json").write_text(RECIPE.format(filter_id))
    run(f"batch r.json {source} --out {target}.out --quiet {more}")
    Path(f"{target}.out", source).rename(target)


def by_blocks(filter_id: str, source: str, target: str, more: str = "") -> None:
    by_apply(filter_id, source, target, f"--memory 64G {more}")


def check_type(face: Any, dtype: str) -> None:
    if face is by_blocks and dtype in ("int8", "int32"):
        pytest.skip("blocks are not read of this type")


FACES = pytest.mark.parametrize("face", [by_apply, by_batch, by_blocks])


@FACES
@pytest.mark.parametrize("dtype", SIGNED)
@pytest.mark.parametrize("depth", [1, 3])
def test_a_negative_of_signed_data_turns_their_range(face: Any, dtype: str, depth: int) -> None:
    """Black becomes white and white black: -1000 and 3000 are exchanged."""
    check_type(face, dtype)
    samples = signed(dtype, (depth, 12, 10))
    picture("a.tif", samples[0] if depth == 1 else samples)
    face("negative", "a.tif", "b.tif")
    is_picture = depth == 1 and dtype == "float32"
    found = read_image("b.tif").pixels if is_picture else None
    made = read_volume("b.tif").unscaled if found is None else found[np.newaxis]
    assert made.dtype == dtype
    low, high = samples.min(), samples.max()
    expected = low.astype(float) + high - samples
    np.testing.assert_allclose(made, expected, atol=2e-6 if dtype == "float32" else 0)


@FACES
@pytest.mark.parametrize("dtype", SIGNED)
def test_salt_is_the_largest_voxel_and_pepper_the_smallest(face: Any, dtype: str) -> None:
    check_type(face, dtype)
    samples = signed(dtype)
    picture("a.tif", samples)
    face("salt_and_pepper_noise", "a.tif", "b.tif")
    made = read_volume("b.tif").unscaled
    changed = made != samples
    assert 0 < changed.sum() < 60
    assert set(made[changed].tolist()) == {samples.min(), samples.max()}


def test_poisson_counts_from_black() -> None:
    samples = signed("float32", (60, 60))
    low, high = SIGNED["float32"]
    made = ks.poisson_noise(samples, photons=10_000)
    shares = (samples - low) / (high - low)
    error = (made - samples) / (high - low)
    assert np.all(made[shares == 0] == low)
    assert np.std(error) == pytest.approx(np.sqrt(np.mean(shares) / 10_000), rel=0.1)


@FACES
def test_white_that_is_given(face: Any) -> None:
    picture("a.tif", FLOATS)
    face("negative", "a.tif", "b.tif", "--white 1000")
    np.testing.assert_allclose(read_image("b.tif").pixels, 1000 - FLOATS, atol=1e-4)
    face("negative", "a.tif", "c.tif", "--white 1000 --black -10")
    np.testing.assert_allclose(read_image("c.tif").pixels, 990 - FLOATS, atol=1e-4)


@FACES
def test_white_of_a_volume(face: Any) -> None:
    voxels = np.arange(3 * 12 * 10, dtype=np.uint16).reshape(3, 12, 10)
    write_volume(Volume.from_array(voxels), "a.tif")
    face("negative", "a.tif", "b.tif", "--white 4095")
    np.testing.assert_array_equal(read_volume("b.tif").voxels, 4095 - voxels)
    face("salt_and_pepper_noise", "a.tif", "c.tif", "--white 4095")
    made = read_volume("c.tif").voxels
    assert set(made[made != voxels].tolist()) == {0, 4095}


def test_threshold_and_noise_are_relative_to_white() -> None:
    samples = np.full((9, 9), 100, np.float32)
    samples[4, 4] = 140
    picture("a.tif", samples)
    for white, averaged in (("255", False), ("510", True)):  # 140 is 35.6 from its mean of 104.4
        by_apply("threshold_mean", "a.tif", "b.tif", f"--white {white} --threshold 30")
        assert (read_image("b.tif").pixels[4, 4] != 140) == averaged
    by_apply("gaussian_noise", "a.tif", "c.tif", "--white 1000 --sigma 0.1")
    assert np.std(read_image("c.tif").pixels - samples) == pytest.approx(100, rel=0.2)


def quality_of(made: NDArray[Any], reference: NDArray[Any], span: float) -> float:
    return 10 * math.log10(span**2 / float(np.mean((made.astype(float) - reference) ** 2)))


@pytest.mark.parametrize("white", ["", "1000"])
def test_quality_names_its_white(white: str) -> None:
    noisy = FLOATS + np.float32(20) * np.random.default_rng(0).standard_normal((24, 20))
    picture("a.tif", noisy.astype(np.float32))
    picture("reference.tif", FLOATS)
    more = white and f"--white {white}"
    found = run(f"apply median a.tif b.tif --reference reference.tif {more}").out
    made, span = read_image("b.tif").pixels, float(white or 510)
    assert f"after:  PSNR {quality_of(made, FLOATS, span):.2f} dB (white is {span:g})" in found


def test_quality_of_a_batch_names_its_white() -> None:
    Path("in").mkdir()
    Path("ideal").mkdir()
    samples = signed("int16")
    noisy = samples + np.random.default_rng(0).integers(-50, 50, samples.shape).astype(np.int16)
    picture("in/a.tif", noisy)
    picture("ideal/a.tif", samples)
    Path("r.json").write_text(RECIPE.format("median"))
    for summary, more in (("s.json", ""), ("s.csv", "--white 4095 --black -1")):
        line = f"batch r.json in --out out --reference ideal --summary {summary} --overwrite"
        run(f"{line} --quiet {more}")
    made = read_volume("out/a.tif").voxels
    (found,) = json.loads(Path("s.json").read_text())["files"]
    assert found["levels"] == "black is -1000, white is 3000"
    assert found["psnr"] == pytest.approx(quality_of(made, samples, 4000), abs=1e-3)
    (row,) = csv.DictReader(Path("s.csv").read_text().splitlines())
    assert row["levels"] == "black is -1, white is 4095"
    assert float(row["psnr"]) == pytest.approx(quality_of(made, samples, 4096), abs=1e-3)


def test_quality_of_the_library() -> None:
    samples = signed("float32", (12, 10))
    made = samples + np.float32(0.1)
    found = ks.quality(made, samples)
    assert (found.peak, found.black) == (10, -2.5)
    assert "(black is -2.5, white is 7.5)" in found.describe()
    assert ks.quality(made, samples, white=7.5, black=-12.5).psnr == pytest.approx(46.02, abs=0.01)
    with pytest.raises(ks.AppError, match="is not above black"):
        ks.quality(made, samples, white=-3)
    with pytest.raises(ks.AppError, match="without white"):
        ks.quality(made, samples, black=-3)


@pytest.mark.parametrize("how", ["function", "recipe", "file"])
def test_levels_in_the_library(how: str) -> None:
    recipe = ks.Recipe.from_json(RECIPE.format("negative"))
    if how == "function":
        made = ks.negative(FLOATS, white=1000, black=-10)
    elif how == "recipe":
        made = recipe(FLOATS, white=1000, black=-10)
    else:
        picture("a.tif", FLOATS)
        recipe.apply_file("a.tif", "b.tif", memory="64G", white=1000, black=-10)
        made = read_image("b.tif").pixels
    np.testing.assert_allclose(made, 990 - FLOATS, atol=1e-4)


def test_levels_that_the_library_refuses() -> None:
    with pytest.raises(ks.AppError, match="a picture of uint16 is the largest number"):
        ks.negative(FLOATS.astype(np.uint16), white=9)
    with pytest.raises(ks.AppError, match=r"negative\(\): white: 'a' is not a number"):
        ks.negative(FLOATS, white="a")  # type: ignore[call-overload]
    voxels = np.arange(60, dtype=np.uint16).reshape(3, 4, 5)
    np.testing.assert_array_equal(ks.negative(voxels, axis="z", white=4095), 4095 - voxels)


def test_the_run_names_black_and_white() -> None:
    picture("a.tif", signed("int16"))
    error = run("apply negative a.tif b.tif").err
    assert "note: Negative: -1000 is black and 3000 is white." in error


def test_levels_without_an_end_and_types_with_levels_of_their_own() -> None:
    for white, black in ((math.inf, 0), (1e308, -1e308)):
        with pytest.raises(InvalidParameter, match="is not above black"):
            given_levels(white, black)
    own = [
        (kind, dtype)
        for kind in Kind
        for dtype in map(np.dtype, ("u1", "u2", "i2", "f4"))
        if own_levels(kind, dtype)
    ]
    assert own == [
        (Kind.PICTURE, np.uint8),
        (Kind.PICTURE, np.uint16),
        (Kind.PICTURE, np.int16),
        (Kind.VOLUME, np.uint8),
    ]


def test_a_notice_about_levels_is_added_to_those_of_the_source() -> None:
    source = Volume.from_array(np.zeros((2, 3, 4), np.uint8), notices=("Known.",))
    first, second = with_levels(source, given_levels(1)).notices
    assert first == "Known."
    assert second.startswith("White has no effect")


@pytest.mark.parametrize("command", ["apply negative a.tif b.tif", "batch r.json a.tif --out b"])
@pytest.mark.parametrize(
    ("more", "status", "message"),
    [
        ("--white 0", 1, "White, 0, is not above black, 0."),
        ("--white 5 --black 6", 1, "White, 5, is not above black, 6."),
        ("--black 6", 1, "Black is given without white."),
        ("--white nan", 2, "is not a number like"),
    ],
)
def test_levels_that_are_no_range(command: str, more: str, status: int, message: str) -> None:
    picture("a.tif", FLOATS)
    Path("r.json").write_text(RECIPE.format("negative"))
    assert message in refused(f"{command} {more}", status=status)
    assert not Path("b.tif").exists()


def test_where_white_has_no_effect_it_says_so() -> None:
    picture("a.tif", FLOATS)
    picture("i.tif", FLOATS.astype(np.uint16))
    error = run("apply median a.tif b.tif --white 9").err
    assert "note: --white has no effect: no step asks for it" in error
    for more in ("", "--memory 64G"):
        error = run(f"apply negative i.tif b.tif --white 9 {more}").err
        assert "note: White has no effect: that of a picture of uint16" in error
        np.testing.assert_array_equal(read_image("b.tif").pixels, 65535 - FLOATS.astype(np.uint16))
