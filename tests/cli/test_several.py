"""Files of several pictures or volumes: ``apply`` filters all of them, as ``batch`` does."""

from __future__ import annotations

import json
from collections import deque
from pathlib import Path

import nibabel
import numpy as np
import pytest
import tifffile
from PIL import Image as PillowImage

from kernelscope.base import memory
from kernelscope.base.errors import ImageReadError
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.step import Step
from kernelscope.files import read_image, read_pages, write_recipe
from kernelscope.files.volumes import read_volume, read_volumes, zarr_source
from kernelscope.images.source import Channel
from tests.cli.running import refused, run
from tests.files.test_volumes_dicom import pixels
from tests.files.test_volumes_dicom import write as write_slice
from tests.lazy.test_viewing import DYES
from tests.lazy.test_viewing import write as write_zarr

TZCYX = np.random.default_rng(5).integers(0, 60000, (2, 4, 3, 12, 10), np.uint16)
TZCYX[..., 0, 0] = 65535  # the white of each volume
PAGES = np.random.default_rng(6).integers(0, 256, (3, 12, 10, 3), np.uint8)


def _ome(name: str) -> None:
    channels = {"Name": ["DAPI", "GFP", "RFP"]}
    metadata = {"axes": "TZCYX", "PhysicalSizeX": 0.25, "PhysicalSizeY": 0.5, "Channel": channels}
    tifffile.imwrite(name, TZCYX, photometric="minisblack", metadata=metadata)


def _animation(name: str) -> None:
    frames = [PillowImage.fromarray(each).quantize(8) for each in PAGES]
    frames[0].save(name, save_all=True, append_images=frames[1:])


def _series(name: str) -> None:
    Path(name).mkdir()
    for index in range(3):
        write_slice(Path(name, f"IM{index}"), pixels(index), index)


MAKERS = {
    "tzc.ome.tif": _ome,
    "channels.ome.tif": lambda name: tifffile.imwrite(
        name, TZCYX[0, 0], photometric="minisblack", metadata={"axes": "CYX"}
    ),
    "imagej.tif": lambda name: tifffile.imwrite(
        name, TZCYX, imagej=True, metadata={"axes": "TZCYX"}
    ),
    "times.nii.gz": lambda name: nibabel.save(
        nibabel.Nifti1Image(TZCYX[0, :, :2].T.astype(np.int16) // 4, np.eye(4)), name
    ),
    "colours.tif": lambda name: tifffile.imwrite(name, PAGES, photometric="rgb", metadata=None),
    "animation.gif": _animation,
    "series": _series,
}


@pytest.mark.parametrize("name", MAKERS)
def test_apply_writes_all_that_a_file_holds_as_batch_does(name: str) -> None:
    MAKERS[name](name)
    first = f"{name} one.nii.gz --volume 1"
    if "." not in name or name in ("colours.tif", "animation.gif"):
        PillowImage.fromarray(PAGES[0]).save("p.png")
        first = "p.png one.png"
    run(f"apply median {first} --save-recipe r.json")
    run(f"batch r.json {name} --out out --summary s.json")
    (row,) = json.loads(Path("s.json").read_text())["files"]
    target = Path(row["target"])
    said = run(f"apply --recipe r.json {name} {target.name} --json")
    assert Path(target.name).read_bytes() == target.read_bytes()
    assert json.loads(said.out)["record"] == row["record"]
    assert [each.removeprefix("note: ") for each in said.err.splitlines()] == row["notices"]


@pytest.mark.parametrize(("number", "time", "channel"), [(1, 0, 0), (3, 0, 2), (5, 1, 1)])
def test_a_number_picks_one_of_them(number: int, time: int, channel: int) -> None:
    _ome("in.ome.tif")
    run("apply negative in.ome.tif all.ome.tif --quiet")
    run(f"apply negative in.ome.tif one.tif --quiet --volume {number}")
    made, (single,) = read_volumes("all.ome.tif"), read_volumes("one.tif")
    wanted = 65535 - TZCYX[time, :, channel]
    assert np.array_equal(single.voxels, wanted)
    assert len(made) == 6
    assert np.array_equal(made[number - 1].voxels, wanted)
    assert made[number - 1].channel.name == ["DAPI", "GFP", "RFP"][channel]
    assert made[number - 1].steps["x"] == pytest.approx(2.5e-4)


def test_the_residuals_of_channels_are_in_sigmas_of_photons() -> None:
    """As in the window: noise of 4 levels a photon on a black of 100 beside noise of 5 levels."""
    random = np.random.default_rng(1)
    photons = np.broadcast_to(np.linspace(5, 400, 64), (8, 64, 64))
    lit = 100 + 4 * random.poisson(photons) + random.normal(0, 3, photons.shape)
    even = 500 + 5 * random.normal(0, 1, photons.shape)
    metadata = {"axes": "CZYX", "PhysicalSizeX": 0.2, "PhysicalSizeXUnit": "µm"}
    stacks = np.stack((lit, even)).round().astype(np.uint16)
    tifffile.imwrite("in.ome.tif", stacks, photometric="minisblack", metadata=metadata)
    said = run("denoise in.ome.tif out.ome.tif --residual r.ome.tif").out.splitlines()
    assert said[-1].startswith("r.ome.tif: output - input of ")
    assert said[-1].endswith(", in units of the sigma of its noise in volume 1 alone")
    first, second = read_volumes("r.ome.tif")
    outputs = [each.voxels.astype(float) for each in read_volumes("out.ome.tif")]
    np.testing.assert_array_equal(second.voxels, outputs[1] - stacks[1])
    bright = outputs[0] > 400
    change = (outputs[0] - stacks[0]) / np.sqrt(np.maximum(4 * (outputs[0] - 100), 0) + 9)
    np.testing.assert_allclose(first.voxels[bright], change[bright], rtol=0.1)
    errors = run("denoise in.ome.tif out.ome.tif --residual slices.pngs", status=1).err
    assert "slices.pngs: several volumes are written to NIfTI, TIFF" in errors


def test_each_result_has_a_line() -> None:
    _ome("in.ome.tif")
    lines = run("apply mean in.ome.tif o.ome.tif --device cpu").out.splitlines()
    names = [line.partition(":")[0] for line in lines]
    assert names == [f"o.ome.tif, {number} of 6" for number in range(1, 7)]


def test_one_picture_of_several_goes_where_only_one_fits() -> None:
    MAKERS["colours.tif"]("in.tif")
    said = run("apply negative in.tif one.png")
    assert "note: Only the first of 3 pages is shown." in said.err
    assert np.array_equal(read_pages("one.png")[0].pixels, 255 - PAGES[0])
    error = refused("apply negative in.tif all.tif --reference input")
    assert "--reference is for one picture; in.tif holds 3" in error


@pytest.mark.parametrize(("version", "metadata"), [("0.4", ".zattrs"), ("0.5", "zarr.json")])
def test_an_ome_zarr_is_read_as_a_whole(version: str, metadata: str) -> None:
    """Every time and channel, as of the same OME-TIFF, and a plane as a picture."""
    write_zarr(Path("in.zarr"), np.moveaxis(TZCYX, 1, 2), "tczyx", 2, DYES, version)
    said = run("apply negative in.zarr all.ome.tif --json")
    made = read_volumes("all.ome.tif")
    for index, each in enumerate(made):
        time, channel = divmod(index, 3)
        assert np.array_equal(each.voxels, 65535 - TZCYX[time, :, channel])
        assert each.channel == Channel(DYES[channel]["label"], DYES[channel]["color"])
        assert each.steps == pytest.approx(dict.fromkeys("zyx", 5e-4))
        assert each.interval == 0.5
    assert len(made) == 6
    assert json.loads(said.out)["record"]["lost"] == ["lower resolutions"]
    run("apply negative in.zarr all.ome.zarr --quiet")
    write_recipe(Recipe((Step.create("negative"),)), "r.json")
    run("batch r.json in.zarr --suffix .ome.zarr --out out")
    assert "earlier batch" in refused("batch r.json in.zarr --suffix .ome.zarr --out out")
    run("batch r.json in.zarr --suffix .ome.zarr --out out --overwrite")
    for path in (Path("all.ome.zarr"), Path("out/in.ome.zarr")):
        for each, same in zip(read_volumes(path), made, strict=True):
            assert np.array_equal(each.voxels, same.voxels)
            assert each.among == same.among
            assert (each.channel, each.interval) == (same.channel, same.interval)
        assert (path / metadata).exists(), "it is of the version of the input"
    run("apply negative in.zarr one.tif --volume 3 --quiet")
    assert np.array_equal(read_volume("one.tif").voxels, made[2].voxels)
    write_zarr(Path("plane.zarr"), TZCYX[0, 0, 0], "yx", 1)
    run("apply negative plane.zarr plane.tif --reference plane.zarr")
    (slice_,) = read_volume("plane.zarr").voxels
    assert np.array_equal(slice_, TZCYX[0, 0, 0])
    assert read_volume("plane.zarr").steps == pytest.approx(dict.fromkeys("yx", 5e-4))
    write_zarr(Path("colours.zarr"), TZCYX[0, 0], "cyx", 1)
    with pytest.raises(ImageReadError, match="in colours, and no volume"):
        read_volume("colours.zarr")
    image = read_image("plane.tif")
    assert np.array_equal(image.pixels, 65535 - TZCYX[0, 0, 0])
    assert image.metadata.steps == pytest.approx(dict.fromkeys("yx", 5e-4))


def test_an_ome_zarr_that_is_too_large_names_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    write_zarr(Path("in.zarr"), TZCYX[0, :, 0], "zyx", 1)
    with monkeypatch.context() as patch:
        patch.setattr(zarr_source, "MAX_VOXELS", 480)
        assert refused("apply mean in.zarr o.tif") == (
            "error: in.zarr: its 10×12×4 voxels are too many to be read as a whole. "
            "Filter it in blocks: --memory 2G."
        )
    with monkeypatch.context() as patch:
        patch.setattr(memory, "available", lambda: 900)
        patch.setattr(memory, "_noted", deque())
        text = refused("apply mean in.zarr o.tif")
        assert text.startswith("error: There is not enough memory for in.zarr: ")
        assert text.endswith("Or filter it in blocks: --memory 2G.")
    Path("in.zarr/zarr.json").write_text('{"zarr_format": 3}')
    text = refused("apply mean in.zarr o.tif")
    assert text.startswith("error: in.zarr: its OME metadata are missing or damaged.")
    assert "blocks" not in text, "they cannot be read either"


@pytest.mark.parametrize("end", [".ome.tif", ".tif", ".ome.zarr"])
@pytest.mark.parametrize("name", ["in.ome.tif", "turned.ome.tif", "in.zarr", "planes.zarr"])
def test_blocks_filter_all_channels_and_times(name: str, end: str) -> None:
    """Into one file, as a whole run does; numbers are estimated for each."""
    channels = {"Channel": {"Name": ["DAPI", "GFP", "RFP"], "Color": [255, 65535, 2**24 - 1]}}
    sizes = {f"PhysicalSize{axis}": 0.5 for axis in "XYZ"}
    described = {**sizes, **channels, "TimeIncrement": 0.5}
    tczyx = np.moveaxis(TZCYX, 1, 2) // np.arange(1, 7, dtype=np.uint16).reshape(2, 3, 1, 1, 1)
    if name.endswith("zarr"):
        planes = name == "planes.zarr"
        axes, samples = ("cyx", tczyx[0, :2, 0]) if planes else ("tczyx", tczyx)
        write_zarr(Path(name), samples, axes, 2, DYES[: samples.shape[-3 if planes else 1]])
    else:
        is_turned = name == "turned.ome.tif"
        samples = tczyx.swapaxes(0, 1) if is_turned else tczyx
        axes = "CTZYX" if is_turned else "TCZYX"
        metadata = {"axes": axes, **described}
        tifffile.imwrite(name, samples, ome=True, photometric="minisblack", metadata=metadata)
    run(f"apply nlm {name} whole.ome.tif --patch 3 --search-radius 1 --quiet")
    said = run(f"apply nlm {name} blocks{end} --patch 3 --search-radius 1 --memory 64G")
    whole, blocks = read_volumes("whole.ome.tif"), read_volumes(f"blocks{end}")
    assert f"{len(whole)} volumes of 10×12×{whole[0].depth} voxels" in said.out
    assert "(other volumes: as estimated for each)" in said.out
    assert len(blocks) == len(whole) == (2 if name == "planes.zarr" else 6)
    for each in whole:
        (same,) = (other for other in blocks if set(other.among) == set(each.among))
        assert np.array_equal(same.voxels, each.voxels)
        assert (same.channel, same.interval) == (each.channel, each.interval)
        assert (same.steps, same.microscope) == (pytest.approx(each.steps), True)
    record = json.loads(run(f"apply median {name} b{end} --memory 64G --json").out)["record"]
    assert {"channel names", "channel colours"} <= set(record["kept"])
    assert not any("volume 1" in text.lower() for text in record["changed"])
    if name != "planes.zarr":
        assert "the time step" in record["kept"]


def test_blocks_name_the_option_that_chooses() -> None:
    with tifffile.TiffWriter("in.tif") as file:
        for side in (8, 9):
            stack = np.zeros((3, side, side), np.uint8)
            file.write(stack, photometric="minisblack", contiguous=False)
    error = refused("apply mean in.tif o.tif --memory 64G")
    assert "That is --volume N." in error
