"""Files of several pictures or volumes: ``apply`` filters all of them, as ``batch`` does."""

from __future__ import annotations

import json
from pathlib import Path

import nibabel
import numpy as np
import pytest
import tifffile
from PIL import Image as PillowImage

from kernelscope.cli.main import main
from kernelscope.files import read_pages
from kernelscope.files.volumes import read_volumes
from tests.files.test_volumes_dicom import pixels
from tests.files.test_volumes_dicom import write as write_slice

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


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", MAKERS)
def test_apply_writes_all_that_a_file_holds_as_batch_does(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    MAKERS[name](name)
    first = ["apply", "median", name, "one.nii.gz", "--volume", "1", "--save-recipe", "r.json"]
    if "." not in name or name in ("colours.tif", "animation.gif"):
        PillowImage.fromarray(PAGES[0]).save("p.png")
        first[2:6] = ["p.png", "one.png"]
    assert main(first) == 0
    assert main(["batch", "r.json", name, "--out", "out", "--summary", "s.json"]) == 0
    (row,) = json.loads(Path("s.json").read_text())["files"]
    target = Path(row["target"])
    capsys.readouterr()
    assert main(["apply", "--recipe", "r.json", name, target.name, "--json"]) == 0
    out, notes = capsys.readouterr()
    assert Path(target.name).read_bytes() == target.read_bytes()
    assert json.loads(out)["record"] == row["record"]
    assert [each.removeprefix("note: ") for each in notes.splitlines()] == row["notices"]


@pytest.mark.parametrize(("number", "time", "channel"), [(1, 0, 0), (3, 0, 2), (5, 1, 1)])
def test_a_number_picks_one_of_them(number: int, time: int, channel: int) -> None:
    _ome("in.ome.tif")
    assert main(["apply", "negative", "in.ome.tif", "all.ome.tif", "--quiet"]) == 0
    one = ["apply", "negative", "in.ome.tif", "one.tif", "--volume", str(number), "--quiet"]
    assert main(one) == 0
    made, (single,) = read_volumes("all.ome.tif"), read_volumes("one.tif")
    wanted = 65535 - TZCYX[time, :, channel]
    assert np.array_equal(single.voxels, wanted)
    assert len(made) == 6
    assert np.array_equal(made[number - 1].voxels, wanted)
    assert made[number - 1].channel.name == ["DAPI", "GFP", "RFP"][channel]
    assert made[number - 1].steps["x"] == pytest.approx(2.5e-4)


def test_each_result_has_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    _ome("in.ome.tif")
    assert main(["apply", "mean", "in.ome.tif", "o.ome.tif", "--device", "cpu"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        f"o.ome.tif, {number} of 6" for number in range(1, 7)
    ]


def test_one_picture_of_several_goes_where_only_one_fits(
    capsys: pytest.CaptureFixture[str],
) -> None:
    MAKERS["colours.tif"]("in.tif")
    assert main(["apply", "negative", "in.tif", "one.png"]) == 0
    assert "note: Only the first of 3 pages is shown." in capsys.readouterr().err
    assert np.array_equal(read_pages("one.png")[0].pixels, 255 - PAGES[0])
    assert main(["apply", "negative", "in.tif", "all.tif", "--reference", "input"]) == 1
    assert "--reference is for one picture; in.tif holds 3" in capsys.readouterr().err


def test_zarr_is_refused_with_the_way_out(capsys: pytest.CaptureFixture[str]) -> None:
    Path("in.zarr").mkdir()
    Path("in.zarr/.zgroup").write_text('{"zarr_format": 2}')
    assert main(["apply", "mean", "in.zarr", "o.tif"]) == 1
    assert capsys.readouterr().err == (
        "error: in.zarr: OME-Zarr is filtered in blocks, and not as a whole. "
        "Filter it in blocks: --memory 2G.\n"
    )


def test_blocks_name_the_option_that_chooses(capsys: pytest.CaptureFixture[str]) -> None:
    _ome("in.ome.tif")
    assert main(["apply", "mean", "in.ome.tif", "o.tif", "--memory", "1G"]) == 1
    assert "6: time 2, RFP. That is --volume N." in capsys.readouterr().err
