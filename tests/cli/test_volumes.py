"""``apply`` to volumes, and ``phantom``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image as PillowImage
from scipy import ndimage
from skimage.metrics import peak_signal_noise_ratio, structural_similarity

from kernelscope import filters
from kernelscope.cli.common import StatusLine
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.step import Step
from kernelscope.files.volumes import read_volume
from kernelscope.filters.shared.mri_sigma import estimate_global
from kernelscope.images.phantom import Contrast, head
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.samples import Kind
from tests.cli.running import refused, run
from tests.cli.test_apply import apply, figures, files, wrong

AFFINE = np.array([[0, -2.0, 0, 30], [1.5, 0, 0, -20], [0, 0, 3.0, 5], [0, 0, 0, 1]])
QUICK = "--search-radius 1"

each_filter = pytest.mark.parametrize(
    "spec", filters.discover(Kind.VOLUME).values(), ids=lambda spec: spec.id
)


def scan(seed: int, shape: tuple[int, ...] = (9, 8, 7), dtype: str = "int16") -> NDArray[Any]:
    """Return voxels as nibabel has them, x first."""
    return np.random.default_rng(seed).integers(0, 900, shape).astype(dtype)


def save(name: str, voxels: NDArray[Any], affine: NDArray[Any] = AFFINE) -> None:
    image = nibabel.Nifti1Image(voxels, affine)
    image.header["descrip"] = b"a scan"
    nibabel.save(image, name)


def read(name: str) -> NDArray[Any]:
    return np.asanyarray(nibabel.load(name).dataobj)


@pytest.fixture(autouse=True)
def scans(here: Path) -> None:
    """Two scans of 9x8x7 voxels, of 16 bits: T1.nii.gz and T2.nii."""
    save("T1.nii.gz", scan(1))
    save("T2.nii", scan(2))


@pytest.fixture
def uncomputed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is computed."""
    monkeypatch.setattr(
        "kernelscope.backends.cpu.CpuBackend.run", lambda *_: pytest.fail("the filter ran")
    )


# Filters of volumes -------------------------------------------------------------------


@each_filter
def test_a_volume_goes_in_and_comes_out(spec: FilterSpec) -> None:
    quick = QUICK if "search_radius" in spec.defaults() else ""
    said = apply(f"{spec.id.replace('_', '-')} T1.nii.gz out.nii.gz {quick}")
    before, after = nibabel.load("T1.nii.gz"), nibabel.load("out.nii.gz")
    assert after.header == before.header
    assert read("out.nii.gz").dtype == np.int16
    assert (read("out.nii.gz") != read("T1.nii.gz")).any()
    (line,) = said.out.splitlines()
    assert line.startswith(f"out.nii.gz: {spec.name}, ")
    assert " CPU parallel; 9×8×7 voxels in " in line
    assert line.endswith(" megavoxels/s")


@each_filter
def test_help_has_the_options_of_volumes(spec: FilterSpec) -> None:
    text = " ".join(apply(f"{spec.id} --help-all").out.split())
    shared = ("--component", "--output-component", "--volume", "--float", "--level", "--residual")
    for option in (*shared, "--difference", "--reference", "--save-recipe"):
        assert f" {option} " in text
    for option in ("--axis", "--border", "--grey"):
        assert f" {option} " not in text


@pytest.mark.slow
def test_components_are_filtered_together() -> None:
    apply(f"mri-nlm T1.nii.gz alone.nii.gz {QUICK}")
    said = apply(f"mri-nlm T1.nii.gz out.nii.gz --component T2.nii {QUICK}")
    first, second = said.out.splitlines()
    assert first.startswith("out.nii.gz: MRI NLM, ")
    assert second == "out-T2.nii.gz: from T2.nii"
    assert (read("out.nii.gz") != read("alone.nii.gz")).any()
    apply(f"mri-nlm T2.nii b.nii --component T1.nii.gz --output-component a.nii {QUICK}")
    np.testing.assert_array_equal(read("a.nii"), read("out.nii.gz"))
    np.testing.assert_array_equal(read("b.nii"), read("out-T2.nii.gz"))
    wanted = "--component T2.nii --output-component T2.nii"  # in place, as was asked for
    apply(f"mri-nlm T1.nii.gz a.nii {wanted} {QUICK}")
    np.testing.assert_array_equal(read("T2.nii"), read("out-T2.nii.gz"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("--rician --adaptive", "--noise rician --sigma-from adaptive"),
        ("--gaussian", "--noise gaussian --sigma-from volume"),
        ("--sigma 40", "--sigma-from given --sigma 40"),
        ("--sigma 40 --adaptive", "--sigma-from adaptive"),
    ],
)
def test_short_spellings(short: str, long: str) -> None:
    apply(f"mri-nlm T1.nii.gz short.npy --lossy {QUICK} {short}")
    apply(f"mri-nlm T1.nii.gz long.npy --lossy {QUICK} {long}")
    np.testing.assert_array_equal(np.load("short.npy"), np.load("long.npy"))


def test_floats_are_kept_on_demand() -> None:
    apply(f"mri-nlm T1.nii.gz rounded.nii {QUICK}")
    apply(f"mri-nlm T1.nii.gz exact.nii --float {QUICK}")
    exact = read("exact.nii")
    assert exact.dtype == np.float32
    assert (exact != np.rint(exact)).any()
    np.testing.assert_array_equal(read("rounded.nii"), np.rint(exact).astype(np.int16))
    np.testing.assert_array_equal(nibabel.load("exact.nii").affine, AFFINE)


def test_one_of_several_volumes() -> None:
    save("4d.nii", np.stack([scan(seed) for seed in (5, 1, 2)], axis=3))
    apply(f"mri-nlm 4d.nii one.nii --volume 2 {QUICK}")
    apply(f"mri-nlm T1.nii.gz expected.nii {QUICK}")
    np.testing.assert_array_equal(read("one.nii"), read("expected.nii"))
    two = "--component 4d.nii --output-component second.nii --volume 2,3"
    apply(f"mri-nlm 4d.nii first.nii {two} {QUICK}")
    apply(f"mri-nlm T1.nii.gz a.nii --component T2.nii {QUICK}")
    np.testing.assert_array_equal(read("first.nii"), read("a.nii"))
    np.testing.assert_array_equal(read("second.nii"), read("a-T2.nii"))


def test_a_folder_of_bitmaps() -> None:
    voxels = scan(3, (4, 6, 5), "uint8")
    for folder in ("slices", "more.slices"):
        Path(folder).mkdir()
        for number, plane in enumerate(voxels):
            PillowImage.fromarray(plane).save(f"{folder}/slice{number}.bmp")
    apply(f"mri-nlm slices out.tif --component more.slices {QUICK}")
    np.save("slices.npy", voxels)
    apply(f"mri-nlm slices.npy out.npy {QUICK}")
    np.testing.assert_array_equal(read_volume("out.tif").voxels, np.load("out.npy"))
    assert np.load("out.npy").dtype == np.uint8
    assert Path("out-more.slices.tif").exists()


# Filters of pictures ------------------------------------------------------------------


@pytest.mark.parametrize("axis", ["z", "y", "x"])
def test_pictures_are_filtered_slice_by_slice(axis: str) -> None:
    said = apply(f"median T1.nii.gz out.nii.gz --size 5 --axis {axis} --border mirror")
    size = tuple(1 if axis == name else 5 for name in "xyz")
    expected = ndimage.median_filter(scan(1), size, mode="mirror")
    np.testing.assert_array_equal(read("out.nii.gz"), expected)
    assert nibabel.load("out.nii.gz").header == nibabel.load("T1.nii.gz").header
    assert "9×8×7 voxels in " in said.out


def test_a_mask_goes_through_the_slices() -> None:
    line = "--dimensions 3d --size 5,1,3 --border mirror --save-recipe median.json"
    said = apply(f"median T1.nii.gz out.nii.gz {line}")
    expected = ndimage.median_filter(scan(1), (5, 1, 3), mode="mirror")  # x first
    np.testing.assert_array_equal(read("out.nii.gz"), expected)
    assert "Median 3-D, mask size 5, 1, 3 voxels, mirror border" in said.out
    apply("--recipe median.json T1.nii.gz again.nii.gz")
    np.testing.assert_array_equal(read("again.nii.gz"), expected)
    # Each step of a chain has its own.
    apply("negative T1.nii.gz chain.nii.gz --float : mean : mean --dimensions=3d --size 3")
    flat = ndimage.uniform_filter(900.0 - scan(1), (3, 3, 1))
    found = read("chain.nii.gz") - ndimage.uniform_filter(flat, 3)
    assert np.ptp(found) < 1e-3  # the brightest voxel, which is white, is not 900


def test_3d_is_for_volumes_and_for_filters_with_a_mask() -> None:
    PillowImage.fromarray(np.zeros((4, 4), np.uint8)).save("in.png")
    error = refused("apply mean in.png out.png --dimensions 3d")
    assert "mean --dimensions 3d is for volumes" in error
    assert "Leave out --dimensions 3d" in error
    assert "4 is even" in refused("apply mean T1.nii.gz out.nii.gz --dimensions 3d --size 4")
    error = wrong("nlm T1.nii.gz out.nii.gz --dimensions 3d")
    assert "there is no option --dimensions" in error
    assert "--axis" in wrong("mean T1.nii.gz out.nii.gz --dimensions 3d --axis x")
    apply("mean in.png out.png --dimensions 2d")
    assert not Path("out.nii.gz").exists()


# Chains -------------------------------------------------------------------------------


@pytest.mark.slow
def test_steps_follow_each_other_over_volumes() -> None:
    noise, nlm = "--sigma 0.05 --seed 3", f"{QUICK} --component T2.nii"
    apply(f"rician-noise T1.nii.gz noisy.nii {noise}")
    apply("rician-noise T2.nii noisy-T2.nii --sigma 0.05 --seed 10")
    apply(f"mri-nlm noisy.nii expected.nii {QUICK} --component noisy-T2.nii")
    line = f"rician-noise T1.nii.gz out.nii {noise} --reference input : mri-nlm {nlm}"
    said = apply(f"{line} --save-recipe steps.json").out.splitlines()
    assert said[0].startswith("step 1: Rician noise, sigma 0.05, seed 3, slice by slice across z,")
    assert said[1].startswith("  before: PSNR ∞ dB")
    assert said[3].startswith("out.nii: MRI NLM, ")
    assert said[4].removeprefix("  before: ") == said[2].removeprefix("  after:  ")
    assert said[6] == "out-T2.nii: from T2.nii"
    np.testing.assert_array_equal(read("out.nii"), read("expected.nii"))
    np.testing.assert_array_equal(read("out-T2.nii"), read("expected-noisy-T2.nii"))
    apply("--recipe steps.json T1.nii.gz again.nii --component T2.nii")
    np.testing.assert_array_equal(read("again.nii"), read("out.nii"))


def test_estimates_are_told() -> None:
    said = apply(f"mri-nlm T1.nii.gz out.nii --component T2.nii {QUICK}")
    texts = [f"{estimate_global(read(name).T):.4g}" for name in ("T1.nii.gz", "T2.nii")]
    (beta,) = re.findall(r"note: MRI NLM: beta was estimated: (\S+) \(of T1", said.err)
    assert f"sigma from volume, estimated sigma {', '.join(texts)}, beta {beta}" in said.out
    note = f"MRI NLM: sigma was estimated: {', '.join(texts)} (of T1.nii.gz, T2.nii)."
    assert f"note: {note}\n" in said.err
    error = apply("nlm T1.nii.gz out.nii --filter-sigma estimate").err
    assert "Non-local means: filter sigma was estimated: " in error


def test_the_axis_of_slices_is_part_of_a_recipe() -> None:
    apply("mean T1.nii.gz out.nii --axis y --save-recipe mean.json")
    apply("--recipe mean.json T1.nii.gz again.nii")
    np.testing.assert_array_equal(read("again.nii"), read("out.nii"))
    apply("--recipe mean.json T1.nii.gz other.nii --axis x")
    assert (read("other.nii") != read("out.nii")).any()


def test_residual_and_difference_are_volumes() -> None:
    line = "mean T1.nii.gz out.nii : median --residual r.nii --difference d.nii"
    said = apply(f"{line} --save-recipe s.json --reference T2.nii --float")
    assert said.out.splitlines()[-2:] == [
        "r.nii: output - input of Median",
        "d.nii: output - reference",
    ]
    apply("mean T1.nii.gz mean.nii --float")
    np.testing.assert_array_equal(read("r.nii"), read("out.nii") - read("mean.nii"))
    np.testing.assert_array_equal(read("d.nii"), read("out.nii") - read("T2.nii"))
    np.testing.assert_array_equal(nibabel.load("r.nii").affine, AFFINE)


# Judging ------------------------------------------------------------------------------


def expected_figures(voxels: NDArray[Any], reference: NDArray[Any]) -> list[float]:
    """Return PSNR, SSIM, MSE and MAE from scikit-image and NumPy; x is the first axis."""
    peak = reference.max()
    error = voxels.astype(float) - reference
    slices = zip(voxels.T.astype(float), reference.T.astype(float), strict=True)
    return [
        peak_signal_noise_ratio(reference, voxels, data_range=peak),
        np.mean([structural_similarity(a, b, data_range=peak) for a, b in slices]),
        (error**2).mean(),
        abs(error).mean(),
    ]


@pytest.mark.parametrize("line", ["median T1.nii.gz out.nii", f"mri-nlm T1.nii.gz out.nii {QUICK}"])
def test_the_result_is_judged_by_the_reference(line: str) -> None:
    _, before, after = apply(f"{line} --reference T2.nii").out.splitlines()
    for said, name in ((before, "T1.nii.gz"), (after, "out.nii")):
        quality, bias = said.rsplit(", bias ", 1)
        voxels = read(name).astype(float)
        wanted = expected_figures(voxels, read("T2.nii").astype(float))
        assert figures(quality) == pytest.approx(wanted, rel=5e-4, abs=1e-4)
        assert float(bias) == pytest.approx((voxels - read("T2.nii")).mean(), rel=5e-4)
    assert before.startswith("  before: ")
    assert after.startswith("  after:  ")


# Errors -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("mri-nlm T1.nii.gz out.nii --component small.nii", "small.nii"),
        ("mri-nlm T1.nii.gz out.nii --component turned.nii", "turned.nii"),
        ("mri-nlm T1.nii.gz out.nii --component nowhere.nii", "nowhere.nii"),
        ("mri-nlm nowhere.nii out.nii", "nowhere.nii"),
        ("mri-nlm nowhere out.nii", "nowhere"),
        ("mri-nlm in.png out.nii", "“in.png” is a picture; mri-nlm is for volumes"),
        ("mri-nlm T1.nii.gz out.png", "volumes are not written as .png files"),
        ("mri-nlm T1.nii.gz out.npy", "Or add --lossy."),
        ("mri-nlm T1.nii.gz nowhere/out.nii", "the folder"),
        ("mri-nlm 4d.nii out.npy --lossy", "several volumes are written to NIfTI, TIFF and"),
        (
            "mri-nlm 4d.nii out.nii --component T2.nii",
            "4d.nii: it holds 2 volumes. Choose one by number: 1: volume 1; 2: volume 2. "
            "That is --volume N.",
        ),
        (
            "median 4d.nii out.nii --reference T1.nii.gz",
            "--reference is for one volume; 4d.nii holds 2 volumes. Choose one with --volume N, "
            "or leave it out.",
        ),
        ("mri-nlm 4d.nii out.nii --volume 3", "There is 1 to 2"),
        ("mri-nlm T1.nii.gz out.nii --volume 1,1", "--volume has 2 numbers for 1 files"),
        ("mri-nlm T1.nii.gz out.nii --component T2.nii --component a/T2.nii", "written twice"),
        ("mri-nlm T1.nii.gz T.nii --component 2.nii --output-component T.nii", "written twice"),
        ("mri-nlm T1.nii.gz a.nii --component b.nii --component a-b.nii", "a-b.nii, where a"),
        (
            "mri-nlm T1.nii.gz o.nii --component T2.nii --residual o-T2.nii",
            "o-T2.nii would be written twice",
        ),
        (
            "mri-nlm T1.nii.gz o.nii --component T2.nii --save-recipe o-T2.nii",
            "o-T2.nii would be written twice",
        ),
        ("mri-nlm T1.nii.gz out.nii --output-component b.nii", "1 --output-component for 0"),
        ("mri-nlm T1.nii.gz out.nii --reference small.nii", "cannot be compared with small.nii"),
        (f"mri-nlm T1.nii.gz o.nii{' --component T2.nii' * 4} --volume 1", "written twice"),
        ("median T1.nii.gz out.nii : mean --border valid", "Step 2, Mean: Slices have to keep"),
        ("median T1.nii.gz out.nii --border valid", "Slices have to keep their size"),
        ("median T1.nii.gz out.nii --residual r.png", "volumes are not written as .png files"),
        ("--recipe nlm.json T1.nii.gz out.nii --axis y", "MRI NLM has no --axis"),
        ("median in.png out.png --axis z", "--axis is for volumes; in.png is a picture."),
        ("median in.png out.png --volume 2", "--volume is for volumes"),
        ("median in.png out.png --float", "--float is for volumes"),
        ("--recipe mean.json in.png out.png --component T2.nii", "--component is for volumes"),
        ("median in.png out.png : mri-nlm", "“in.png” is a picture; mri-nlm is for volumes"),
    ],
)
@pytest.mark.usefixtures("uncomputed")
def test_errors_are_said_before_computing(line: str, message: str, here: Path) -> None:
    PillowImage.fromarray(np.zeros((9, 9), np.uint8)).save("in.png")
    save("small.nii", scan(3, (9, 8, 6)))
    save("turned.nii", scan(3), AFFINE @ np.diag([-1, 1, 1, 1]))
    save("4d.nii", scan(3, (9, 8, 7, 2)))
    Path("nlm.json").write_text(Recipe((Step.create("mri-nlm"),)).to_json())
    Path("mean.json").write_text(Recipe((Step.create("mean"),)).to_json())
    before = files(here)
    assert message in refused(f"apply {line}")
    assert files(here) == before


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("mri-nlm T1.nii.gz out.nii --axis z", "there is no option --axis"),
        ("median T1.nii.gz out.nii --component T2.nii", "there is no option --component"),
        ("median T1.nii.gz out.nii --axis t", "invalid choice: 't'"),
        ("mri-nlm T1.nii.gz out.nii --volume 0", "0 is not at least 1"),
        ("mri-nlm T1.nii.gz out.nii --volume 1,,2", "--volume: “” is not a number like 1, 2, 3"),
        ("mri-nlm T1.nii.gz", "give two files, INPUT and OUTPUT"),
    ],
)
def test_wrong_usage(line: str, message: str) -> None:
    assert message in wrong(line)


def test_a_terminal_is_told_how_far_it_is_and_how_long_it_takes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 100.0
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr("kernelscope.engine.timing.time.monotonic", lambda: now)
    status = StatusLine()
    status.progress("compute", 0.0)
    now += 5
    status.progress("compute", 0.25)
    *_, first, second = (text.strip() for text in capsys.readouterr().err.split("\r"))
    assert (first, second) == ("compute 0 %", "compute 25 %, 15 s left")


# phantom ------------------------------------------------------------------------------


def test_a_phantom_and_its_truth() -> None:
    line = "phantom a.nii.gz --size 20x24x16 --noise gaussian --sigma 10 --truth truth.nii"
    assert run(line).out.splitlines() == [
        "a.nii.gz: T1w head of 20×24×16 voxels, gaussian noise of sigma 10, seed 0",
        "truth.nii: the same without noise",
    ]
    noisy, truth = read("a.nii.gz"), read("truth.nii")
    assert noisy.shape == truth.shape == (20, 24, 16)
    assert noisy.dtype == np.float32
    np.testing.assert_array_equal(truth.T, head((16, 24, 20), ["T1w"]).truth[Contrast.T1W])
    assert (noisy - truth).std() == pytest.approx(10, rel=0.05)
    assert nibabel.aff2axcodes(nibabel.load("a.nii.gz").affine) == ("R", "P", "S")


@pytest.mark.slow
def test_voxels_of_a_phantom_have_a_size() -> None:
    said = run("phantom a.nii.gz --size 64x64x37 --voxel 3.75x3.5x4 --sigma 0")
    assert "64×64×37 voxels of 3.75×3.5×4 mm" in said.out
    image = nibabel.load("a.nii.gz")
    np.testing.assert_allclose(image.header.get_zooms(), (3.75, 3.5, 4))
    np.testing.assert_allclose(image.affine, np.diag([3.75, -3.5, 4, 1]))
    wanted = head((37, 64, 64), ["T1w"], voxel=(4, 3.5, 3.75)).truth[Contrast.T1W]
    np.testing.assert_array_equal(read("a.nii.gz").T, wanted)


@pytest.mark.slow
def test_volumes_are_written_as_folders_of_pictures() -> None:
    np.save("in.npy", scan(3, (11, 6, 5), "uint8"))
    apply(f"mri-nlm in.npy out.pngs {QUICK}")
    apply(f"mri-nlm in.npy out.npy {QUICK}")
    np.testing.assert_array_equal(read_volume("out.pngs").voxels, np.load("out.npy"))
    assert sorted(each.name for each in Path("out.pngs").iterdir())[-1] == "slice-011.png"
    error = refused(f"apply mri-nlm in.npy out.pngs --float {QUICK}")
    assert "cannot keep fractions" in error
    apply(f"mri-nlm out.pngs again.pngs --component out.pngs {QUICK}")
    assert Path("again-out.pngs").is_dir()


@pytest.mark.slow
def test_phantoms_repeat_themselves() -> None:
    for name, options in {
        "a": "",
        "same": "--weighting t1 --noise rician --sigma 20 --seed 0",
        "seed": "--seed 1",
        "t2": "--weighting t2",
        "pd": "--weighting pd",
        "varying": "--noise varying-rician",
        "uniform": "--noise uniform",
        "none": "--sigma 0",
    }.items():
        run(f"phantom {name}.npy --size 12 --quiet {options}")
    names = ("a", "seed", "t2", "pd", "varying", "uniform", "none")
    np.testing.assert_array_equal(np.load("a.npy"), np.load("same.npy"))
    assert len({np.load(f"{name}.npy").tobytes() for name in names}) == len(names)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a.png", "volumes are not written as .png files"),
        ("a", "the name has no suffix"),
        ("nowhere/a.nii", "the folder"),
        ("a.nii --truth nowhere/t.nii", "the folder"),
        ("a.nii --truth a.nii", "a.nii would be written twice"),
        ("a.npy --size 8 --voxel 2", "cannot keep the distance of voxels"),
        ("a.pngs --size 8", "cannot keep fractions"),
        ("a.nii --size 9999", "9999×9999×9999 voxels are too many"),
        ("a.nii --size 8 --sigma -1", "A sigma of -1.0"),
        ("a.nii --size 8 --sigma nan", "A sigma of nan"),
    ],
)
def test_bad_phantoms(line: str, message: str, here: Path) -> None:
    before = files(here)
    assert message in refused(f"phantom {line}")
    assert files(here) == before


@pytest.mark.parametrize(
    "line",
    [
        "",
        "a.nii --size 0",
        "a.nii --size 5x5",
        "a.nii --size big",
        "a.nii --voxel 0",
        "a.nii --voxel 1x1",
        "a.nii --voxel thick",
        "a.nii --voxel nan",
        "a.nii --weighting t3",
        "a.nii --noise pink",
        "a.nii --sigma much",
        "a.nii --seed -1",
    ],
)
def test_wrong_usage_of_phantom(line: str) -> None:
    refused(f"phantom {line}", status=2)


# NaN ----------------------------------------------------------------------------------


def with_holes() -> NDArray[Any]:
    voxels = scan(4, dtype="float32")
    voxels[0] = np.nan
    save("holes.nii", voxels)
    return voxels


@pytest.mark.usefixtures("uncomputed")
def test_nan_takes_a_number() -> None:
    with_holes()
    error = refused("apply median holes.nii out.nii")
    assert "56 of 504 voxels are NaN" in error
    assert "That is --nan 0." in error
    error = refused("apply median T1.nii.gz out.nii --reference holes.nii")
    assert "That is --nan 0." in error
    assert not Path("out.nii").exists()


@pytest.mark.parametrize("number", [0, -7])
def test_nan_is_filtered_as_the_number(number: int) -> None:
    voxels = with_holes()
    save("filled.nii", np.where(np.isnan(voxels), np.float32(number), voxels))
    said = f"note: 56 of 504 voxels are NaN: filtered as {number}, saved as NaN again.\n"
    assert said in apply(f"median holes.nii out.nii --nan {number} --reference holes.nii").err
    apply("median filled.nii expected.nii")
    expected = read("expected.nii").copy()
    expected[0] = np.nan
    np.testing.assert_array_equal(read("out.nii"), expected)
