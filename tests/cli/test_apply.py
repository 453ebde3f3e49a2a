"""``apply`` with several steps, with recipes, and with a picture to judge by."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from numpy.typing import NDArray
from PIL import Image as PillowImage
from PIL import ImageCms
from skimage.metrics import peak_signal_noise_ratio, structural_similarity

from kernelscope.files import SAMPLES, read_image, read_recipe, write_image
from kernelscope.images.image import Image
from kernelscope.images.judging.pictures import difference, suggest_gain
from tests.cli.running import Said, refused, run
from tests.files.makers import png_chunk, png_header
from tests.paths import ROOT


@pytest.fixture(autouse=True)
def picture(here: Path) -> None:
    """A part of a photo: in.png, 60x50 pixels, in colour."""
    (coffee,) = (sample.path for sample in SAMPLES if sample.path.name == "coffee.png")
    with PillowImage.open(coffee) as photo:
        photo.crop((300, 100, 360, 150)).save("in.png")


def read(name: str) -> NDArray[Any]:
    with PillowImage.open(name) as image:
        return np.asarray(image)


def apply(line: str, *more: str, status: int = 0) -> Said:
    return run(f"apply {line}", *more, status=status)


def wrong(line: str, *more: str) -> str:
    """Return the message about wrong usage."""
    error = refused(f"apply {line}", *more, status=2)
    assert error.endswith("--help” lists the options.")
    return error


def files(here: Path) -> set[str]:
    return {path.name for path in here.iterdir()}


# Chains -------------------------------------------------------------------------------


def test_a_chain_is_its_steps_one_by_one() -> None:
    noise, median = "--variance 0.002 --seed 7", "--size 5 --border wrap --grey"
    apply(f"gaussian-noise in.png noisy.png {noise}")
    apply(f"median noisy.png smooth.png {median}")
    apply("sobel smooth.png edges.png")
    said = apply(f"gaussian-noise in.png out.png {noise} : median {median} : sobel")
    np.testing.assert_array_equal(read("out.png"), read("edges.png"))
    first, second, third = said.out.splitlines()
    assert first.startswith("step 1: Gaussian noise, variance 0.002, ")
    assert second.startswith("step 2: Median, mask size 5 px, wrap border, in grey, CPU parallel; ")
    assert third.startswith("out.png: Sobel, ")


@pytest.mark.parametrize(
    "line",
    [
        "mean in.png out.png --size 5 : median",
        "mean --size 5 : median in.png out.png",
        "mean in.png --size 5 : median out.png",
        "mean in.png --size 5 out.png : median",
        "mean --size 5 in.png out.png : median",
        "mean --size 5 : median -- in.png out.png",
    ],
)
def test_the_files_stand_with_any_step(line: str) -> None:
    apply("mean in.png one.png --size 5")
    apply("median one.png two.png")
    apply(line)
    np.testing.assert_array_equal(read("out.png"), read("two.png"))


def test_common_options_stand_with_any_step() -> None:
    said = apply("mean in.png out.png --level serial : median --device cpu")
    assert said.out.count("CPU serial") == 2
    assert apply("mean in.png out.png : median --quiet") == ("", "")


def test_a_level_that_one_step_lacks() -> None:
    """Noise has no level of a GPU: that it is offered at all is due to the other step."""
    assert "invalid choice: 'tuned'" in wrong("speckle-noise in.png out.png --level tuned")
    line = "speckle-noise in.png out.png : mean --level tuned --device cpu"
    assert "has no level “tuned” on the CPU" in apply(line, status=1).err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("mean in.png out.png :", "step 2: argument FILTER: the filter is missing; choose from "),
        (": mean in.png out.png", "argument FILTER: the filter is missing; choose from "),
        ("", "argument FILTER"),
        ("mean in.png out.png --border soft", "invalid choice: 'soft'"),
        ("mean in.png out.png : blur", "step 2: argument FILTER: there is no filter “blur”"),
        ("blur in.png out.png --size 3", "there is no filter “blur”; choose from "),
        ("meen in.png out.png", "there is no filter “meen”; did you mean mean or median? See "),
        ("mean in.png : median", "give two files, INPUT and OUTPUT; found: in.png."),
        ("mean : median", "give two files, INPUT and OUTPUT; found: none."),
        (
            "mean a.png b.png : median c.png",
            "give two files, INPUT and OUTPUT; found: a.png, b.png, c.png.",
        ),
        ("mean in.png out.png : sobel --size 3", "there is no option --size"),
        ("mean in.png out.png --quiet : sobel --quiet", "--quiet: give it once, for all steps"),
        ("mean in.png out.png --repeat 2 : mean --repeat 1", "--repeat: give it once"),
        ("mean in.png out.png --quiet : mean --verbose", "--quiet: not allowed with"),
        ("mean in.png out.png --difference d.png", "--difference: only with --reference"),
        ("--recipe a.json in.png out.png : mean", "--recipe: no steps can follow it"),
        ("--recipe a.json in.png out.png --size 3", "there is no option --size"),
        ("--recipe a.json in.png out.png --save-recipe b", "there is no option --save-recipe"),
        ("--recipe a.json in.png", "give two files, INPUT and OUTPUT; found: in.png."),
        ("in.png out.png", "argument FILTER: there is no filter “in.png”"),
        ("mean in.png a.png --residual a.png", "must be different files"),
        ("mean in.png out.png --repeat x", "--repeat: “x” is not a number like 1, 2, 3."),
        ("mean in.png out.png --nan x", "--nan: “x” is not a number like 0, 0.5, -20."),
    ],
)
def test_wrong_usage(line: str, message: str) -> None:
    assert message in wrong(line)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["", "out.png"], "the name is empty"),
        (["in.png", ""], "the name is empty"),
        (["in.png", "out.png", "--residual", ""], "the name is empty"),
        *(
            (["in.png", "out.png", "--memory-limit", size], "--memory-limit")
            for size in ("9" * 40, "4611686018427387904", "99999999999999G", "1e400")
        ),
    ],
)
def test_values_that_cannot_be(words: list[str], message: str) -> None:
    assert message in wrong("median", *words)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "mean in.png out.png : sobel : threshold-mean --size 4",
            "Step 3, Mean with threshold: Mask size: 4 is",
        ),
        (
            "mean in.png out.png --size 31 --border valid : median --size 31 --border valid",
            "Step 2, Median: The 31×31 neighbourhood does not fit",
        ),
        ("mean in.png out.png --border valid --residual r.png", "r.png: Pictures of 58×48 and"),
        ("mean in.png out.png --residual nowhere/r.png", "the folder"),
        ("mean in.png out.png --residual r", "r: the name has no suffix"),
        ("mean in.png out.png --save-recipe nowhere/a.json", "the folder"),
        ("mean in.png out.png --reference nowhere.png", "nowhere.png: the file does not exist."),
        (
            "mean in.png out.png --grey --border valid --reference input --difference d.png",
            "d.png: Pictures of 58×48 and 60×50 pixels cannot be compared",
        ),
        ("--recipe nowhere.json in.png out.png", "nowhere.json: the recipe cannot be read"),
        ("--recipe in.png in.png out.png", "in.png: this is no recipe."),
    ],
)
def test_errors_are_said_before_computing(
    line: str, message: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernelscope.engine.steps.execute", lambda *_: pytest.fail("a step ran"))
    assert message in refused(f"apply {line}")
    assert files(here) == {"in.png"}


def test_help_explains_chains() -> None:
    text = apply("--help").out
    (example,) = re.findall(r"^  kernelscope apply (.*)$", text, re.MULTILINE)
    apply(example)
    assert "\n  salt-and-pepper-noise   Turns some samples white" in text


# Recipes ------------------------------------------------------------------------------


def test_a_saved_recipe_does_the_same_again() -> None:
    chain = "rician-noise in.png out.png --seed 3 : mask --border mirror --save-recipe a.json"
    apply(chain, "--mask", "0 1 0; 1 4.5 1; 0 1 0")
    said = apply("--recipe a.json in.png again.png --level serial")
    np.testing.assert_array_equal(read("again.png"), read("out.png"))
    second = said.out.splitlines()[1]
    assert second.startswith("again.png: Custom mask, mask 0 1 0; 1 4.5 1; 0 1 0, ")
    assert "mirror border, CPU serial" in second
    assert [step.filter.id for step in read_recipe("a.json").steps] == ["rician_noise", "mask"]
    apply("in.png last.png --quiet --recipe=a.json")
    np.testing.assert_array_equal(read("last.png"), read("out.png"))


def test_a_broken_recipe_is_explained() -> None:
    apply("mean in.png out.png --save-recipe a.json")
    recipe = Path("a.json")
    recipe.write_text(recipe.read_text().replace('"size": 3', '"size": 4'))
    assert refused("apply --recipe a.json in.png again.png") == (
        "error: a.json: steps[0].parameters.size: Mask size: 4 is even. "
        "A mask needs a centre: use 3 or 5."
    )


def test_an_estimate_is_printed_and_kept_as_the_word() -> None:
    nlm = "nlm --patch 3 --search-radius 2 --filter-sigma"
    said = apply(f"gaussian-noise in.png out.png : {nlm} estimate --save-recipe a.json")
    found = re.search(r"note: Non-local means: filter sigma was estimated: (\S+)\.\n", said.err)
    assert found
    assert f", filter sigma {found[1]}, " in said.out
    assert '"filter_sigma": "estimate"' in Path("a.json").read_text()
    apply("--recipe a.json in.png again.png --quiet")
    np.testing.assert_array_equal(read("again.png"), read("out.png"))
    apply(f"gaussian-noise in.png typed.png : {nlm} {found[1]}")
    np.testing.assert_array_equal(read("typed.png"), read("out.png"))


def test_only_some_parameters_have_an_estimate() -> None:
    assert "“estimate” is not a number" in refused(
        "apply nlm in.png out.png --patch-sigma estimate"
    )
    assert run("list").out.count(", or estimate; default: ") == 6
    entries = json.loads(run("list --json").out)["filters"]
    options = [option for entry in entries for option in entry["parameters"]]
    estimated = {o["option"] for o in options if o.get("estimate") == "estimate"}
    assert estimated == {"--filter-sigma", "--beta", "--sigma", "--patch"}


# Judging ------------------------------------------------------------------------------


def figures(line: str) -> list[float]:
    """Return PSNR, SSIM, MSE and MAE from a line of the output."""
    found = re.search(r": +PSNR (\S+) dB.*, SSIM (\S+), MSE (\S+), MAE (\S+)$", line)
    assert found, line
    return [float(text.replace("∞", "inf")) for text in found.groups()]


def expected(picture: NDArray[Any], reference: NDArray[Any]) -> list[float]:
    """The same from scikit-image and NumPy."""
    error = picture.astype(float) - reference.astype(float)
    axis = 2 if picture.ndim == 3 else None
    return [
        peak_signal_noise_ratio(reference, picture),
        structural_similarity(picture, reference, channel_axis=axis),
        (error**2).mean(),
        abs(error).mean(),
    ]


@pytest.mark.parametrize("reference", ["input", "in.png"])
def test_steps_are_judged_by_the_reference(reference: str) -> None:
    apply("gaussian-noise in.png noisy.png")
    said = apply(f"gaussian-noise in.png out.png : median --reference {reference}")
    _, equal, noisy, _, before, after = said.out.splitlines()
    assert figures(equal) == [np.inf, 1, 0, 0]
    assert noisy.partition(":")[0] == "  after"
    assert before.partition(":")[0] == "  before"
    clean = read("in.png")
    for line, name in ((noisy, "noisy.png"), (before, "noisy.png"), (after, "out.png")):
        assert figures(line) == pytest.approx(expected(read(name), clean), rel=5e-4)


def test_a_grey_result_is_judged_by_the_grey_reference() -> None:
    apply("greyscale in.png grey.png")
    said = apply("mean in.png out.png --grey --reference input --difference d.png")
    _, after, of_difference = said.out.splitlines()
    assert figures(after) == pytest.approx(expected(read("out.png"), read("grey.png")), rel=5e-4)
    first, second = (read(name)[:, :, None] for name in ("out.png", "grey.png"))
    gain = suggest_gain(first, second)
    np.testing.assert_array_equal(read("d.png"), difference(first, second, gain)[:, :, 0])
    assert of_difference == f"d.png: output - reference, ×{gain} around grey 128"


def test_a_grey_picture_with_alpha_compares_with_one_in_colour() -> None:
    pixels = np.random.default_rng(2).integers(0, 256, (20, 20, 4)).astype(np.uint8)
    write_image(Image.from_array(pixels[:, :, :3]), "colour.png")
    write_image(Image.from_array(pixels[:, :, [0, 3]]), "grey.png")
    apply("mean grey.png out.png --reference colour.png --difference d.png")
    assert read("out.png").shape == (20, 20, 2)
    assert read("d.png").shape == (20, 20)


def test_the_residual_is_that_of_the_last_step() -> None:
    apply("gaussian-noise in.png noisy.png")
    said = apply("gaussian-noise in.png out.png : median --residual r.png")
    pair = read("out.png"), read("noisy.png")
    gain = suggest_gain(*pair)
    np.testing.assert_array_equal(read("r.png"), difference(*pair, gain))
    last = said.out.splitlines()[-1]
    assert last == f"r.png: output - input of Median, ×{gain} around grey 128"


def test_a_reference_that_does_not_compare() -> None:
    PillowImage.fromarray(np.zeros((9, 9, 3), np.uint8)).save("small.png")
    said = apply("mean in.png out.png --reference small.png")
    assert "note: The result cannot be compared with the reference: " in said.err
    assert "PSNR" not in said.out
    apply("mean in.png out.png --reference small.png --difference d.png", status=1)


def test_alpha_and_sixteen_bits() -> None:
    """Differences leave alpha out and are of 8 bits, whatever the picture is."""
    pixels = np.random.default_rng(1).integers(0, 65536, (20, 20, 4)).astype(np.uint16)
    write_image(Image.from_array(pixels), "deep.tif")
    apply("mean deep.tif out.tif --residual r.png --reference input --difference d.jpg")
    assert read("r.png").shape == read("d.jpg").shape == (20, 20, 3)


IMPOSSIBLE = ["a\0.png", "a" * 300 + ".png", "b/" * 2100 + "a.png"]


@pytest.mark.parametrize("name", IMPOSSIBLE, ids=["null", "long name", "long path"])
@pytest.mark.parametrize(
    "line",
    [
        "median {} out.png",
        "median in.png {}",
        "median in.png out.png --reference {}",
        "median in.png out.png --residual {}",
        "median in.png out.png --reference input --difference {}",
        "median in.png out.png --save-recipe {}",
        "--recipe {} in.png out.png",
        "mri-nlm {} out.nii",
        "mri-nlm in.npy {}",
        "mri-nlm in.npy out.npy --component {}",
        "mri-nlm in.npy out.npy --component in.npy --output-component {}",
    ],
)
def test_names_that_no_file_can_have(line: str, name: str, here: Path) -> None:
    np.save("in.npy", np.ones((3, 4, 5), np.float32))
    words = [name if word == "{}" else word for word in line.split()]
    refused("apply", *words)
    assert not files(here) & {"out.png", "out.npy"}


def test_control_characters_in_names_are_spelt_out(here: Path) -> None:
    (here / "in.png").rename(here / "in\x1b[2J.png")
    out = apply("median", "in\x1b[2J.png", "a\nb\x07.png").out
    assert "\x07" not in out
    assert r"b\x07.png" in out
    assert refused("apply median", "no\x1b[2Jsuch\nfile.png", "out.png") == (
        r"error: no\x1b[2Jsuch\nfile.png: the file does not exist. Was it moved or renamed?"
    )


# Metadata of pictures -----------------------------------------------------------------


@pytest.mark.parametrize("grey", ["", " --grey"])
def test_metadata_that_the_output_does_not_keep(grey: str) -> None:
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    with PillowImage.open("in.png") as image:
        image.save("tagged.png", icc_profile=profile, dpi=(300, 300))
    said = "note: out.ppm is saved without colour profile and resolution of the input.\n"
    assert said in apply(f"median tagged.png out.ppm{grey}").err
    lost = "note: out.jpg is saved without colour profile of the input.\n"
    found = apply(f"median tagged.png out.jpg : negative{grey}").err
    assert (lost in found) == bool(grey)  # It is for colour.
    with PillowImage.open("out.jpg") as image:
        assert image.info["dpi"] == (300, 300)
        assert (image.info.get("icc_profile") == profile) == (not grey)
    assert apply(f"median tagged.png out.ppm{grey} --quiet").err == ""


def test_two_dashes_end_the_options(here: Path) -> None:
    (here / "in.png").rename(here / "-in.png")
    apply("median --size 3 -- -in.png --quiet", status=1)  # no format
    apply("median -- -in.png --out.png")
    apply("median -- -in.png -2.png : mean --size 5")
    assert {"--out.png", "-2.png"} <= files(here)


@pytest.mark.slow
def test_quiet_is_quiet_where_libraries_warn(tmp_path: Path) -> None:
    """Python prints uncaught warnings; pytest catches them, so this is a separate program."""
    damaged = png_chunk(b"tRNS", bytes(6))[:-1] + b"?"
    pixels = png_chunk(b"IDAT", zlib.compress(bytes(4 * 4)))
    path = tmp_path / "in.png"
    path.write_bytes(png_header(1, 4) + damaged + pixels + png_chunk(b"IEND", b""))
    run = [sys.executable, "main.py", "apply", "negative", str(path), str(tmp_path / "out.png")]
    loud, quiet = (
        subprocess.run([*run, *more], cwd=ROOT, capture_output=True, text=True, check=True)
        for more in ([], ["--quiet"])
    )
    assert quiet.stderr == quiet.stdout == ""
    assert "note: The file is damaged, parts of the picture may be wrong (tRNS: CRC" in loud.stderr
    assert "PNG warning" not in loud.stderr


def test_nan_in_a_picture() -> None:
    pixels = np.random.default_rng(0).random((9, 8)).astype(np.float32)
    pixels[2, 3] = np.nan
    filled = np.nan_to_num(pixels, nan=0.5)
    for name, samples in (("holes.tif", pixels), ("filled.tif", filled)):
        tifffile.imwrite(name, samples, photometric="minisblack", metadata=None)
    error = refused("apply mean holes.tif out.tif")
    assert "1 of 72 samples is NaN" in error
    assert "That is --nan 0." in error
    assert not Path("out.tif").exists()
    for line in ("mean holes.tif out.tif --nan 0.5", "mean filled.tif expected.tif"):
        apply(f"{line} --border valid")
    expected = tifffile.imread("expected.tif")
    expected[1, 2] = np.nan
    np.testing.assert_array_equal(tifffile.imread("out.tif"), expected)
    apply("mean in.png out.png --nan 1e39")  # There is none to replace.
    assert "NaN cannot be replaced" in refused("apply mean holes.tif out.tif --nan 1e39")
    assert "“black” is not a number" in wrong("mean in.png out.png --nan black")


def test_the_record_as_json(here: Path) -> None:
    """The properties of an input that its output keeps, has in another form, and lacks."""
    text = png_chunk(b"tEXt", b"Comment\0scan of 3 May")
    resolution = png_chunk(b"pHYs", (11811).to_bytes(4, "big") * 2 + b"\1")
    data = (here / "in.png").read_bytes()
    (here / "in.png").write_bytes(data[:33] + text + resolution + data[33:])
    said = apply("median in.png out.bmp --json")
    found = json.loads(said.out)
    assert (found["input"], found["output"]) == ("in.png", "out.bmp")
    assert [step["filter"] for step in found["steps"]] == ["median"]
    assert found["record"] == {"kept": ["resolution"], "changed": [], "lost": ["texts"]}
    assert "note: out.bmp is saved without texts of the input." in said.err
    PillowImage.new("CMYK", (20, 20), (9, 99, 199, 20)).save("inks.jpg")
    changed = json.loads(apply("median inks.jpg out.png --json").out)["record"]["changed"]
    assert changed == ["CMYK converted to RGB without a colour profile."]


def test_the_quality_of_a_jpeg(here: Path) -> None:
    apply("median in.png fine.jpg")
    apply("median in.png same.jpg --quality 95")
    apply("median in.png rough.jpg --quality 20")
    sizes = [(here / f"{name}.jpg").stat().st_size for name in ("fine", "same", "rough")]
    assert sizes[0] == sizes[1] > 2 * sizes[2]
    with PillowImage.open("rough.jpg") as image:
        image.convert("RGB").save("photo.jpg", quality=77, subsampling="4:2:0")
    apply("median photo.jpg again.jpg")
    assert read_image(here / "again.jpg").metadata.jpeg == (95, "4:2:0")
    assert "PNG has no quality" in refused("apply median in.png out.png --quality 50")
    assert "not at most 100" in wrong("median in.png out.jpg --quality 101")
