"""The files of a batch: folders, links, names that would collide."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from kernelscope.base.errors import AppError
from kernelscope.big.batch.item import JOURNAL
from kernelscope.big.batch.listing import find_items


def touch(*paths: Path) -> None:
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")


def targets(*inputs: Path, out: Path, suffix: str | None = None) -> dict[str, str]:
    """Return the name of each source with its place in the output folder."""
    items = find_items(inputs, out, suffix).items
    return {each.source.name: each.target.relative_to(out).as_posix() for each in items}


def test_folders_keep_the_places_of_their_files(tmp_path: Path) -> None:
    touch(tmp_path / "in/a.png", tmp_path / "in/deep/er/b.tif", tmp_path / "in/notes.txt")
    touch(tmp_path / "in/.hidden.png", tmp_path / "single.bmp", tmp_path / "in/c.nii.gz")
    out = tmp_path / "out"
    assert targets(tmp_path / "in", tmp_path / "single.bmp", out=out) == {
        "a.png": "a.png",
        "b.tif": "deep/er/b.tif",
        "c.nii.gz": "c.nii.gz",
        "single.bmp": "single.bmp",
    }
    found = find_items([tmp_path / "in"], out)
    assert found.left_out == 2


def test_a_suffix_replaces_that_of_each_file(tmp_path: Path) -> None:
    touch(tmp_path / "in/a.png", tmp_path / "in/c.nii.gz", tmp_path / "in/scan.dcm")
    out = tmp_path / "out"
    assert set(targets(tmp_path / "in", out=out, suffix=".tif").values()) == {
        "a.tif",
        "c.tif",
        "scan.tif",
    }
    assert targets(tmp_path / "in/scan.dcm", out=out) == {"scan.dcm": "scan.tif"}
    with pytest.raises(AppError, match=r"“\.xyz” is no suffix"):
        targets(tmp_path / "in", out=out, suffix=".xyz")


def test_names_that_collide_keep_their_folders(tmp_path: Path) -> None:
    paths = tmp_path / "one/a.png", tmp_path / "two/a.png", tmp_path / "two/A.png"
    touch(*paths)
    found = find_items(paths, tmp_path / "out").items
    places = [each.target.relative_to(tmp_path / "out").as_posix() for each in found]
    assert places[0] == "one/a.png"
    assert len({place.casefold() for place in places}) == len(places)


def test_files_that_differ_in_their_suffix_alone_keep_it(tmp_path: Path) -> None:
    paths = tmp_path / "a.png", tmp_path / "a.bmp", tmp_path / "b.png"
    touch(*paths)
    assert targets(*paths, out=tmp_path / "out", suffix=".tif") == {
        "a.png": "a.png.tif",
        "a.bmp": "a.bmp.tif",
        "b.png": "b.tif",
    }


def test_names_that_differ_in_capitals_alone_keep_their_suffix_once(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.png", "A.PNG", "A.bmp")]
    touch(*paths)
    assert targets(tmp_path, out=tmp_path / "out") == {
        "a.png": "2-a.png",
        "A.PNG": "A.PNG",
        "A.bmp": "A.bmp",
    }


def test_an_input_that_is_the_output_folder_is_named(tmp_path: Path) -> None:
    touch(tmp_path / "in/a.png")
    (tmp_path / "link").symlink_to(tmp_path / "in")
    for given, out in (("in", "in"), ("link", "in"), ("in", "link")):
        with pytest.raises(AppError, match=f"{given}” is the folder for the results, and is left"):
            find_items([tmp_path / given], tmp_path / out)
    assert len(find_items([tmp_path / "in/a.png"], tmp_path / "in").items) == 1


def test_a_file_named_twice_is_there_once(tmp_path: Path) -> None:
    touch(tmp_path / "in/a.png")
    (tmp_path / "link.png").symlink_to(tmp_path / "in/a.png")
    inputs = tmp_path / "in", tmp_path / "in/a.png", tmp_path / "link.png"
    assert len(find_items(inputs, tmp_path / "out").items) == 1


def test_links_that_lead_back_end(tmp_path: Path) -> None:
    touch(tmp_path / "in/a.png", tmp_path / "in/below/b.png")
    (tmp_path / "in/below/back").symlink_to(tmp_path / "in", target_is_directory=True)
    (tmp_path / "in/self").symlink_to(tmp_path / "in/self")
    assert set(targets(tmp_path / "in", out=tmp_path / "out")) == {"a.png", "b.png"}


def test_the_output_folder_inside_the_input_is_left_out(tmp_path: Path) -> None:
    touch(tmp_path / "a.png", tmp_path / "out/a.png", tmp_path / "out/b.png", tmp_path / JOURNAL)
    assert targets(tmp_path, out=tmp_path / "out") == {"a.png": "a.png"}
    assert find_items([tmp_path], tmp_path / "out").left_out == 0


@pytest.mark.parametrize("name", ["zarr.json", ".zattrs", ".zgroup"])
def test_an_ome_zarr_is_one_item(name: str, tmp_path: Path) -> None:
    scan = tmp_path / "in/scan.ome.zarr"
    touch(scan / name, scan / "0/c/0.png", scan / "0/zarr.json", tmp_path / "in/a.png")
    out = tmp_path / "out"
    assert targets(tmp_path / "in", out=out) == {"a.png": "a.png", scan.name: "scan.ome.tif"}
    assert targets(scan, out=out) == {scan.name: "scan.ome.tif"}
    assert find_items([tmp_path / "in"], out).left_out == 0


def test_an_empty_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(AppError, match="There is no picture or volume in"):
        find_items([tmp_path], tmp_path / "out")


@pytest.mark.slow
def test_ten_thousand_files(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(10_000):
        os.close(os.open(folder / f"{number:05}.png", os.O_CREAT | os.O_WRONLY))
    found = find_items([folder], tmp_path / "out")
    assert len({each.target for each in found.items}) == 10_000
    assert found.items[0].source.name == "00000.png"


def test_earlier_results_are_no_inputs_beside_their_sources(tmp_path: Path) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    sources = [folder / "a.png", folder / "deep/b.png"]
    results = [folder / "a.tif", folder / "clean/deep/b.pngs/0001.png", folder / "clean/c.png"]
    touch(*sources, *results)
    lines: dict[Path, list[dict[str, object]]] = {
        folder: [{"recipe": "", "earlier": {"a.tif": str(sources[0])}}],
        folder / "clean": [
            {"begin": "deep/b.pngs", "source": str(sources[1])},
            {"done": "c.png", "source": str(tmp_path / "gone.png")},
        ],
    }
    for place, content in lines.items():
        (place / JOURNAL).write_text(
            "\n".join(json.dumps(each) for each in content), encoding="utf-8"
        )
    found = find_items([folder], out)
    assert [each.source for each in found.items] == [sources[0], folder / "clean/c.png", sources[1]]
    assert found.remarks == [
        "2 files are left out: results of an earlier batch of these files. "
        "Name them alone to filter them again."
    ]
    assert [each.source for each in find_items([folder / "clean/deep"], out).items] == [results[1]]
    assert [each.source for each in find_items(results, out).items] == results
