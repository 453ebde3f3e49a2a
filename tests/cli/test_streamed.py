"""``apply --memory``: the same samples as in memory, and a clear line for steps that cannot be."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile

from kernelscope.base import memory
from kernelscope.base.errors import OutOfMemory
from kernelscope.big.lazy import blocks, files, streaming
from kernelscope.big.lazy.hints import blocks_mentioned
from kernelscope.files import read_image, read_recipe, write_image
from kernelscope.files.volumes import read_volume
from kernelscope.images.image import Image
from tests.cli import running
from tests.cli.running import run

VOLUME = (9, 40, 33)
PICTURE = (70, 45, 3)


@pytest.fixture(autouse=True)
def sources(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A volume and a picture, cut into odd blocks."""
    random = np.random.default_rng(3)
    voxels = random.integers(0, 3000, VOLUME).astype(np.uint16)
    metadata = {"axes": "ZYX", "spacing_mm": (3.0, 1.0, 0.5)}
    tifffile.imwrite("in.tif", voxels, photometric="minisblack", metadata=metadata)
    pixels = random.integers(0, 256, PICTURE).astype(np.uint8)
    tifffile.imwrite("photo.tif", pixels, photometric="rgb", tile=(16, 32), compression="zlib")
    monkeypatch.setattr(blocks, "_sides", lambda source, *_: (4, 13, source.shape[2]))
    monkeypatch.setattr(memory, "resident", lambda: 300 << 20)  # and not that of all tests


def refused(line: str, message: str, status: int = 1) -> None:
    before = {path.name: path.read_bytes() for path in Path.cwd().iterdir()}
    error = running.refused(f"apply {line}", status=status)
    assert re.search(message, error), error
    assert {path.name: path.read_bytes() for path in Path.cwd().iterdir()} == before


@pytest.mark.slow
@pytest.mark.parametrize(
    "step",
    [
        "median {} --size 5 --border mirror",
        "gaussian-noise {} --seed 4 --axis y",
        "mean {} --size 5 : rotating-mask --border keep",
        "nlm {} --search-radius 2 --patch 3 --axis x",
    ],
)
def test_a_volume(step: str) -> None:
    run(f"apply {step.format('in.tif whole.tif')}")
    output = run(f"apply {step.format('in.tif out.tif --memory 64G')}")
    whole, out = read_volume("whole.tif"), read_volume("out.tif")
    np.testing.assert_array_equal(out.voxels, whole.voxels)
    assert out.voxels.dtype == whole.voxels.dtype
    assert out.spacing == whole.spacing == (3.0, 1.0, 0.5)
    assert re.search(r"out\.tif: .*; 33×40×9 voxels in [\d.]+ m?s, [\d.]+ million", output.out)
    assert re.search(r"in 12 blocks; at most \d+ MiB of memory, 65536 MiB were", output.out)


@pytest.mark.parametrize(
    "step",
    [
        "median {} --size 5 --border wrap --grey",
        "mean {} --size 5 --border valid : gaussian-noise --seed 3",
        "sobel {} --within @area",
    ],
)
def test_a_picture(step: str) -> None:
    area = "rectangle 12,8 40,38"
    for pair in ("photo.tif whole.tif", "photo.tif out.tif --memory 64G"):
        words = step.format(pair).split()
        said = run("apply", *(area if word == "@area" else word for word in words))
    np.testing.assert_array_equal(read_image("out.tif").planes, read_image("whole.tif").planes)
    assert "pixels in" in said.out


@pytest.mark.parametrize("channel", [{"Name": ["DAPI"]}, {"Name": ["DAPI"], "Color": [65535]}])
def test_the_record_names_the_same_as_of_a_whole_run(channel: dict[str, Any]) -> None:
    metadata = {"axes": "ZYX", "Channel": channel}
    stack = np.zeros((3, 8, 8), np.uint16)
    tifffile.imwrite("a.ome.tif", stack, ome=True, photometric="minisblack", metadata=metadata)
    whole, blocks = (
        json.loads(run(f"apply median a.ome.tif b.ome.tif --json {more}").out)["record"]
        for more in ("", "--memory 64G")
    )
    assert whole == blocks
    assert ("channel colour" in whole["kept"]) == ("Color" in channel)


def test_a_recipe_and_one_of_several_volumes() -> None:
    voxels = np.random.default_rng(1).integers(0, 99, (2, 3, 20, 18)).astype(np.uint8)
    tifffile.imwrite("two.ome.tif", voxels, metadata={"axes": "TZYX"})
    command = "mean two.ome.tif out.ome.tif --memory 64G --size 5 --save-recipe a.json --quiet"
    assert run(f"apply {command} --volume 2").out == ""
    assert len(read_recipe(Path("a.json")).steps) == 1
    run("apply --recipe a.json two.ome.tif whole.tif --volume 2")
    np.testing.assert_array_equal(
        read_volume("out.ome.tif").voxels, read_volume("whole.tif").voxels
    )
    with tifffile.TiffFile("out.ome.tif") as file:
        assert file.is_ome


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("mean in.tif in.tif", "in.tif is the input, which is read while"),
        ("mean in.tif link.tif", "link.tif is the input"),
        ("mean in.tif out.png", "out.png: only TIFF files and OME-Zarr folders are written"),
        ("mean photo.png out.tif", "photo.png: only TIFF files and OME-Zarr folders are read"),
        ("mean missing.tif out.tif", "missing.tif: the file does not exist"),
        ("mean bad.tif out.tif", "bad.tif: "),
        ("mean in.tif no/out.tif", "the folder .*no does not exist"),
        ("ripple photo.tif out.tif", "Ripple cannot be computed in blocks: its pattern"),
        ("nlm photo.tif out.tif", "is found from the whole picture"),
        ("median photo.tif out.tif : nlm", "Step 2, .*is found from the whole picture"),
        ("mean in.tif out.tif --device gpu", "cannot be used"),
    ],
)
def test_a_clear_line(line: str, message: str) -> None:
    if "gpu" in line and os.environ.get("REQUIRE_GPU") == "1":
        pytest.skip("there is one")
    Path("link.tif").symlink_to("in.tif")
    Path("bad.tif").write_bytes(b"II*\0" + b"\xff" * 40)
    Path("photo.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(40))
    refused(f"{line} --memory 2G", message)


@pytest.mark.parametrize(
    "option", ["--reference input", "--residual r.tif", "--float", "--nan 0", "--component in.tif"]
)
def test_options_of_whole_files(option: str) -> None:
    name = "mri-nlm" if "component" in option else "mean"
    needs = f"{option.split()[0]} needs the whole file in memory"
    refused(f"{name} in.tif out.tif --memory 2G {option}", needs, status=2)


@pytest.mark.slow
def test_too_little_memory() -> None:
    """In a process of its own: this one may have taken any amount."""
    done = run_apply("mean in.tif out.tif --memory 20M")
    assert done.returncode == 1
    assert "not enough memory to filter in.tif in blocks: the smallest takes 1 MiB" in done.stderr
    assert "Of the 20 MiB allowed, the program itself needs" in done.stderr
    assert not Path("out.tif").exists()


def test_a_file_that_changes_while_it_is_filtered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here after the last block was read: nothing else would notice."""
    stream = streaming.stream

    def changing(*arguments: Any, **how: Any) -> Any:
        report = stream(*arguments, **how)
        with Path("in.tif").open("ab") as handle:
            handle.write(b"x")
        return report

    monkeypatch.setattr(files, "stream", changing)
    Path("out.tif").write_bytes(b"old")
    error = running.refused("apply mean in.tif out.tif --memory 2G")
    assert "in.tif: the file changed while it was read" in error
    assert Path("out.tif").read_bytes() == b"old"
    assert not [path for path in Path.cwd().iterdir() if path.suffix == ".part"]


def test_a_report_for_programs_has_time_and_memory() -> None:
    line = "apply mean in.tif out.tif --memory 2G --json"
    found = json.loads(run(line).out)["streamed"]
    assert found["blocks"] == 3 * 4  # of 4 slices and 13 rows, of 9 and 40
    assert 0 < found["seconds"] < 60
    assert found["peak_bytes"] > 0


def test_a_large_file_mentions_the_option() -> None:
    with Path("huge.tif").open("wb") as handle:
        writer = tifffile.TiffWriter(tifffile.FileHandle(handle, name="huge.tif"), bigtiff=True)
        writer.write(None, shape=(40, 9000, 9000), dtype=np.uint8, photometric="minisblack")
        writer.close()
    error = running.refused("apply mean huge.tif out.tif")
    assert "too many. Crop or scale" in error
    assert error.endswith("Or filter it in blocks: --memory 2G.")


@pytest.mark.parametrize(
    ("name", "hint"), [("a.png", "Use less."), ("a.tif", "Use less. Or filter it in blocks: HOW.")]
)
def test_only_files_that_are_read_in_blocks_mention_the_option(name: str, hint: str) -> None:
    write_image(Image.from_array(np.zeros((8, 8), np.uint8)), Path(name))
    with pytest.raises(OutOfMemory) as caught, blocks_mentioned(Path(name), "HOW"):
        raise OutOfMemory("There is not enough memory.", "Use less.")
    assert caught.value.hint == hint


def run_apply(line: str) -> subprocess.CompletedProcess[str]:
    program = "import sys; from kernelscope.cli.main import main; sys.exit(main(sys.argv[1:]))"
    return subprocess.run(
        [sys.executable, "-c", program, "apply", *line.split()],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_the_memory_of_a_process_stays_below_the_limit() -> None:
    """A volume of 160 MB and its result with 350 MiB, those of the whole process."""
    shape = (40, 2000, 1000)
    with Path("large.tif").open("wb") as handle:
        writer = tifffile.TiffWriter(tifffile.FileHandle(handle, name="large.tif"), bigtiff=True)
        writer.write(None, shape=shape, dtype=np.uint16, photometric="minisblack")
        writer.close()
    done = run_apply("mean large.tif out.tif --size 3 --memory 350M")
    assert done.returncode == 0, done.stderr
    found = re.search(r"in (\d+) blocks; at most (\d+) MiB", done.stdout)
    assert found, done.stdout
    assert int(found[1]) >= 3
    assert int(found[2]) <= 350
    with tifffile.TiffFile("out.tif") as file:
        assert file.series[0].shape == shape
