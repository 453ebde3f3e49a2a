"""``Recipe.apply_file``: the samples of arrays, progress, cancel, and clear lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile

import kernelscope as ks
from kernelscope.base import memory
from kernelscope.big.lazy import blocks
from kernelscope.library.recipes import byte_count

zarr = pytest.importorskip("zarr")

STEPS = [{"filter": "median", "parameters": {"size": 5}, "border": "wrap"}, {"filter": "mean"}]
SIDES = blocks._sides
VOXELS = np.random.default_rng(4).integers(0, 900, (9, 40, 33)).astype(np.uint16)


@pytest.fixture(autouse=True)
def volume(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a volume, which is cut into 12 blocks."""
    tifffile.imwrite("in.tif", VOXELS, photometric="minisblack")
    monkeypatch.setattr(blocks, "_sides", lambda source, *_: (4, 13, source.shape[2]))
    monkeypatch.setattr(memory, "resident", lambda: 300 << 20)  # and not that of all tests


def recipe() -> ks.Recipe:
    return ks.Recipe.from_json(
        json.dumps({"format": "kernelscope recipe", "version": 2, "steps": STEPS})
    )


@pytest.mark.parametrize("target", ["out.tif", "out.ome.zarr"])
def test_samples_of_the_array(target: str) -> None:
    stages = list[tuple[str, float]]()
    report = recipe().apply_file(
        "in.tif", Path(target), memory=3 << 30, progress=lambda *stage: stages.append(stage)
    )
    made = (
        tifffile.imread(target)
        if target.endswith("tif")
        else np.asarray(zarr.open_array(f"{target}/0", mode="r")[:])
    )
    np.testing.assert_array_equal(made, recipe()(VOXELS, volume=True), strict=True)
    assert report.shape == VOXELS.shape
    assert report.streamed.blocks == 12
    assert ("blocks", 1.0) in stages
    assert len(report.steps) == 2


def test_cancel() -> None:
    Path("out.tif").write_bytes(b"old")
    stages = list[str]()
    with pytest.raises(ks.Cancelled):
        recipe().apply_file(
            "in.tif",
            "out.tif",
            progress=lambda stage, _: stages.append(stage),
            cancel=lambda: "blocks" in stages,
        )
    assert Path("out.tif").read_bytes() == b"old"
    assert 1 <= stages.count("blocks") < 12


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"memory": "2 apples"}, "memory: '2 apples' is no size"),
        ({"memory": 0}, "memory: 0 is no size"),
        (
            {"memory": "20M"},
            "not enough memory to filter in.tif in blocks: .* Of the 20 MiB allowed",
        ),
        ({"device": "tpu"}, "device: there is no “tpu”"),
        ({"cancel": 1}, "cancel: int cannot be called"),
        ({"number": 2}, "it has no volume 2"),
        ({"target": "in.tif"}, "in.tif is the input"),
    ],
)
def test_a_clear_line(how: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "_sides", SIDES)
    target = how.pop("target", "out.tif")
    with pytest.raises(ks.AppError, match=rf"Recipe\.apply_file\(\): .*({message})"):
        recipe().apply_file("in.tif", target, **how)
    assert not Path("out.tif").exists()


def test_sizes() -> None:
    sizes = [byte_count(each) for each in (5, "7", "1.5k", "2G", "1T")]
    assert sizes == [5, 7, 1536, 2 << 30, 1 << 40]
