"""OME-Zarr folders read, filtered and written in blocks, with the samples of whole arrays."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
import zarr
from numpy.typing import NDArray

from kernelscope.backends import create_backends
from kernelscope.base import memory
from kernelscope.base.errors import (
    AppError,
    Cancelled,
    ImageReadError,
    ImageWriteError,
    OutOfMemory,
    SeveralVolumes,
)
from kernelscope.big.lazy import blocks, files, streaming
from kernelscope.big.lazy.blocks import cut
from kernelscope.big.lazy.files import filter_file
from kernelscope.big.lazy.opening import open_source
from kernelscope.engine.backend import close_all
from kernelscope.engine.control import CancelToken
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.step import Step
from kernelscope.files.lazy import Head
from kernelscope.files.volumes import zarr_sink
from kernelscope.files.volumes.ome_zarr import Axis, attributes_of, described_by, parsed
from kernelscope.files.volumes.zarr_sink import reduced
from kernelscope.files.volumes.zarr_source import open_zarr
from kernelscope.schema.borders import Border
from kernelscope.schema.crop import Box
from kernelscope.schema.samples import Kind
from tests.pairs import in_turn

VOLUME = (21, 53, 47)
FORMATS = {"0.4": 2, "0.5": 3}


@pytest.fixture(autouse=True)
def own_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "resident", lambda: 300 << 20)  # and not that of all tests


def some(shape: tuple[int, ...], dtype: str = "uint16") -> NDArray[Any]:
    random = np.random.default_rng([*shape])
    return (random.random(shape) * (1 if dtype == "float32" else 250)).astype(dtype)


def stored(
    path: Path,
    samples: NDArray[Any],
    axes: str = "zyx",
    version: str = "0.5",
    chunks: tuple[int, ...] = (5, 16, 23),
    **how: Any,
) -> Path:
    """Write an OME-Zarr folder by the library alone, with spacings of 3, 1 and 0.5 µm."""
    units = {"t": {"type": "time"}, "c": {"type": "channel"}}
    space = {"type": "space", "unit": "micrometer"}
    scales = {"z": 3.0, "y": 1.0, "x": 0.5}
    transform = {"type": "scale", "scale": [scales.get(name, 1.0) for name in axes]}
    multiscale = {
        "axes": [{"name": name, **units.get(name, space)} for name in axes],
        "datasets": [{"path": "full", "coordinateTransformations": [transform]}],
    }
    attributes: dict[str, Any] = (
        {"ome": {"version": "0.5", "multiscales": [multiscale]}}
        if version == "0.5"
        else {"multiscales": [{"version": version, **multiscale}]}
    )
    group = zarr.create_group(path, zarr_format=FORMATS.get(version, 2), attributes=attributes)
    group.create_array("full", data=samples, chunks=chunks, **how)
    return path


def run(source: Path, target: Path, *steps: Step, **how: Any) -> files.Filed:
    chosen = steps or (Step.create("median", {"size": 5}, border=Border.WRAP),)
    limit = how.pop("limit", 3 << 30)
    backends = create_backends()
    try:
        return filter_file(Recipe(chosen), source, target, limit, backends, **how)
    finally:
        close_all(backends.values())


def finest(path: Path) -> NDArray[Any]:
    return np.asarray(zarr.open_array(path / "0", mode="r")[:])


def in_small_blocks(monkeypatch: pytest.MonkeyPatch, *sides: int) -> None:
    monkeypatch.setattr(blocks, "_sides", lambda *_: sides)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "dtype"),
    in_turn(tuple(FORMATS), ("uint8", "uint16", "int16", "float32"), every=2),
)
def test_a_volume_has_the_samples_of_the_whole(
    version: str, dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks and chunks that do not fit each other; TIFF in one block is the oracle."""
    voxels = some(VOLUME, dtype)
    tifffile.imwrite(tmp_path / "in.tif", voxels, photometric="minisblack")
    run(tmp_path / "in.tif", tmp_path / "whole.tif")
    source = stored(tmp_path / "in.zarr", voxels, version=version)
    in_small_blocks(monkeypatch, 4, 19, 47)
    report = run(source, tmp_path / "out.ome.zarr")
    assert report.streamed.blocks == 18
    result = finest(tmp_path / "out.ome.zarr")
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, tifffile.imread(tmp_path / "whole.tif"))
    opened = open_zarr(tmp_path / "out.ome.zarr")
    assert opened.head.ome is not None
    assert opened.head.ome.version == version
    assert opened.head.spacing == pytest.approx((0.003, 0.001, 0.0005))
    assert (
        zarr.open_group(tmp_path / "out.ome.zarr", mode="r").metadata.zarr_format
        == (FORMATS[version])
    )


@pytest.mark.slow
@pytest.mark.parametrize(("border", "axes"), in_turn(tuple(Border), ("yx", "cyx", "zyx"), every=3))
def test_borders(
    border: Border, axes: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = Step.create("mean", {"size": 7}, border=border)
    if border not in step.filter.borders or (border.value == "valid" and axes == "zyx"):
        pytest.skip("no border of this filter")
    samples = some({"yx": (90, 77), "cyx": (3, 90, 77), "zyx": VOLUME}[axes], "uint8")
    plain = np.moveaxis(samples, 0, 2) if axes == "cyx" else samples
    tifffile.imwrite(
        tmp_path / "in.tif", plain, photometric="rgb" if axes == "cyx" else "minisblack"
    )
    run(tmp_path / "in.tif", tmp_path / "whole.tif", step)
    chunks = {"yx": (32, 31), "cyx": (2, 32, 31), "zyx": (4, 17, 13)}[axes]
    source = stored(tmp_path / "in.zarr", samples, axes, chunks=chunks)
    in_small_blocks(monkeypatch, *((6, 20, 47) if axes == "zyx" else (33, 29, plain.shape[-1])))
    if axes == "yx":
        in_small_blocks(monkeypatch, 33, 29, 1)
    run(source, tmp_path / "out.zarr", step)
    result = finest(tmp_path / "out.zarr")
    result = np.moveaxis(result, 0, 2) if axes == "cyx" else result
    np.testing.assert_array_equal(result, tifffile.imread(tmp_path / "whole.tif"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "how",
    [
        {},
        {"chunks": (7, 53, 5)},
        {"chunks": (4, 16, 12), "shards": (8, 32, 24)},
        {"compressors": None},
        {"dtype": ">u2"},
    ],
    ids=str,
)
def test_boxes_of_odd_chunks(how: dict[str, Any], tmp_path: Path) -> None:
    voxels = some(VOLUME)
    if "dtype" in how:
        how = {}
        voxels = voxels.astype(">u2")
    opened = open_source(stored(tmp_path / "in.zarr", voxels, **how))
    assert opened.dtype == np.uint16
    assert opened.dtype.isnative
    for sides in ((21, 53, 47), (3, 53, 19), (21, 14, 13)):
        found = np.zeros(VOLUME, np.uint16)
        for box in cut(VOLUME, sides):
            box.of(found)[...] = opened.read(box)
        np.testing.assert_array_equal(found, voxels)


def test_one_of_several_times_and_channels(tmp_path: Path) -> None:
    samples = some((2, 3, 4, 20, 18))
    source = stored(tmp_path / "in.zarr", samples, "tczyx", "0.4", (1, 2, 3, 8, 8))
    with pytest.raises(SeveralVolumes, match="6 volumes") as caught:
        open_zarr(source)
    assert "5: time 2, channel 2" in caught.value.hint
    opened = open_zarr(source, 5)
    assert opened.kind is Kind.VOLUME
    assert opened.shape == (4, 20, 18)
    np.testing.assert_array_equal(opened.read(Box((0, 0, 0), (4, 20, 18))), samples[1, 1])
    with pytest.raises(ImageReadError, match="it has no volume 7"):
        open_zarr(source, 7)
    for other, same in (("0.0.0.0.0", True), ("1.0.0.0.0", False)):
        chunk = source / "full" / other
        chunk.write_bytes(chunk.read_bytes() + b" ")
        if same:
            opened.check_unchanged()
    with pytest.raises(ImageReadError, match="changed while they were read"):
        opened.check_unchanged()


def test_two_channels_of_one_slice_are_pictures_of_their_own(tmp_path: Path) -> None:
    samples = some((2, 1, 20, 18))
    opened = open_zarr(stored(tmp_path / "in.zarr", samples, "czyx", "0.5", (1, 1, 8, 8)), 2)
    assert opened.kind is Kind.PICTURE
    np.testing.assert_array_equal(opened.read(Box((0, 0, 0), (20, 18, 1)))[:, :, 0], samples[1, 0])


def test_a_result_has_the_channels_of_its_source_and_windows_of_its_own(tmp_path: Path) -> None:
    source = stored(tmp_path / "in.zarr", some((2, *VOLUME)), "czyx", chunks=(1, 5, 16, 23))
    dyes = [{"label": "DAPI", "color": "0000FF"}, {"label": "GFP", "color": "00FF00"}]
    windows = [each | {"window": {"start": 3, "end": 50}} for each in dyes]
    group = zarr.open_group(source, mode="r+")
    ome: Any = group.attrs["ome"]
    group.attrs["ome"] = ome | {"omero": {"channels": windows, "rdefs": {"model": "color"}}}
    run(source, tmp_path / "out.zarr")
    made: Any = zarr.open_group(tmp_path / "out.zarr", mode="r").attrs["ome"]
    assert made["omero"].keys() == {"channels", "rdefs"}
    for each, dye, values in zip(
        made["omero"]["channels"], dyes, finest(tmp_path / "out.zarr"), strict=True
    ):
        start, end = np.percentile(values, (0.2, 99.8))
        ends = {"start": start, "end": end, "min": values.min(), "max": values.max()}
        assert each == dye | {"window": ends}


@pytest.mark.slow
def test_the_pyramid(tmp_path: Path) -> None:
    """Each level from the one before; scale and translation put it where level 0 is."""
    samples = some((1101, 701))
    tifffile.imwrite(tmp_path / "in.tif", samples, photometric="minisblack")
    stages = list[str]()
    run(
        tmp_path / "in.tif",
        tmp_path / "out.zarr",
        Step.create("mean", {"size": 3}),
        progress=lambda stage, _: stages.append(stage),
    )
    group: Any = zarr.open_group(tmp_path / "out.zarr", mode="r")
    levels = [np.asarray(group[str(i)][:]) for i in range(4)]
    assert [each.shape for each in levels] == [(1101, 701), (551, 351), (276, 176), (138, 176)]
    assert sorted(group.array_keys()) == ["0", "1", "2", "3"]
    wide = np.pad(levels[0].astype(int), ((0, 1), (0, 1)), mode="edge")
    means = (wide.reshape(551, 2, 351, 2).sum((1, 3)) + 2) // 4
    np.testing.assert_array_equal(levels[1], means)
    datasets = group.attrs["ome"]["multiscales"][0]["datasets"]
    assert [each["path"] for each in datasets] == ["0", "1", "2", "3"]
    scale, shift = datasets[3]["coordinateTransformations"]
    assert scale == {"type": "scale", "scale": [8.0, 4.0]}
    assert shift == {"type": "translation", "translation": [3.5, 1.5]}
    assert {"blocks", "pyramid"} <= set(stages)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32"])
def test_means_are_rounded_half_up(dtype: str) -> None:
    values = np.array([[1, 2, 7], [1, 2, 8]], dtype)
    if dtype == "int16":
        values = -values
    expected = {"uint8": [[2, 8]], "int16": [[-1, -7]], "float32": [[1.5, 7.5]]}[dtype]
    result = reduced(values, (2, 2))
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(
        reduced(np.full((2, 2, 2), 65535, np.uint16), (2, 2, 2)), [[[65535]]]
    )


@pytest.mark.slow
def test_a_missing_chunk_has_the_fill_value(tmp_path: Path) -> None:
    voxels = some(VOLUME)
    source = stored(tmp_path / "in.zarr", voxels, fill_value=7)
    (source / "full/c/1/0/1").unlink()
    expected = voxels.copy()
    expected[5:10, :16, 23:46] = 7
    opened = open_zarr(source)
    np.testing.assert_array_equal(opened.read(Box((0, 0, 0), VOLUME)), expected)


@pytest.mark.parametrize("version", FORMATS)
def test_a_damaged_chunk_is_named(version: str, tmp_path: Path) -> None:
    source = stored(tmp_path / "in.zarr", some(VOLUME), version=version)
    key = "c/1/0/1" if version == "0.5" else "1.0.1"
    chunk = source / "full" / key
    chunk.write_bytes(chunk.read_bytes()[:40])
    with pytest.raises(ImageReadError, match=rf"in\.zarr: chunk {key}: .* damaged or cut off"):
        run(source, tmp_path / "out.zarr")
    assert [path.name for path in tmp_path.iterdir()] == ["in.zarr"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["full/c/3/1/1", "zarr.json"])
def test_data_that_change_while_they_are_read(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the last block was read: no read would notice."""
    source = stored(tmp_path / "in.zarr", some(VOLUME))
    stream = streaming.stream

    def changing(*arguments: Any, **how: Any) -> Any:
        report = stream(*arguments, **how)
        place = source / name
        place.write_bytes(place.read_bytes() + b" ")
        return report

    monkeypatch.setattr(files, "stream", changing)
    with pytest.raises(ImageReadError, match=r"in\.zarr: the data changed while they were read"):
        run(source, tmp_path / "out.zarr")
    assert [path.name for path in tmp_path.iterdir()] == ["in.zarr"]


def test_a_chunk_that_changed_is_not_read(tmp_path: Path) -> None:
    source = stored(tmp_path / "in.zarr", some(VOLUME))
    opened = open_zarr(source)
    chunk = source / "full/c/2/0/0"
    chunk.write_bytes(chunk.read_bytes() + b" ")
    opened.read(Box((0, 0, 0), (10, 16, 23)))
    with pytest.raises(ImageReadError, match="changed while they were read"):
        opened.read(Box((10, 0, 0), (1, 1, 1)))


@pytest.mark.slow
def test_a_full_disk_leaves_the_old_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = stored(tmp_path / "in.zarr", some(VOLUME))
    run(source, tmp_path / "out.zarr")
    before = finest(tmp_path / "out.zarr")
    write = zarr_sink.ZarrSink.write
    written = list[Box]()

    def full(self: zarr_sink.ZarrSink, box: Box, samples: NDArray[Any]) -> None:
        written.append(box)
        if len(written) < 3:
            write(self, box, samples)
        else:
            monkeypatch.setattr(type(self._arrays[0]), "__setitem__", no_room)
            write(self, box, samples)

    def no_room(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    in_small_blocks(monkeypatch, 4, 53, 47)
    monkeypatch.setattr(zarr_sink.ZarrSink, "write", full)
    with pytest.raises(ImageWriteError, match=r"out\.zarr: the disk is full"):
        run(source, tmp_path / "out.zarr", Step.create("mean", {"size": 9}))
    assert len(written) == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.zarr", "out.zarr"]
    np.testing.assert_array_equal(finest(tmp_path / "out.zarr"), before)


def test_cancelled_in_the_pyramid(tmp_path: Path) -> None:
    tifffile.imwrite(tmp_path / "in.tif", some((1200, 1100)), photometric="minisblack")
    token = CancelToken()

    def stop(stage: str, _: float) -> None:
        if stage == "pyramid":
            token.cancel()

    with pytest.raises(Cancelled):
        run(tmp_path / "in.tif", tmp_path / "out.zarr", token=token, progress=stop)
    assert [path.name for path in tmp_path.iterdir()] == ["in.tif"]


@pytest.mark.slow
def test_other_things_in_the_target_are_not_replaced(tmp_path: Path) -> None:
    source = stored(tmp_path / "in.zarr", some(VOLUME))
    (tmp_path / "out.zarr/labels").mkdir(parents=True)
    with pytest.raises(ImageWriteError, match="holds other things, such as labels"):
        run(source, tmp_path / "out.zarr")
    with pytest.raises(ImageWriteError, match=r"in\.zarr is the input"):
        run(source, source)


def test_alpha_is_refused(tmp_path: Path) -> None:
    tifffile.imwrite(
        tmp_path / "in.tif", some((40, 30, 4), "uint8"), photometric="rgb", extrasamples=[2]
    )
    with pytest.raises(ImageWriteError, match="has no alpha channel"):
        run(tmp_path / "in.tif", tmp_path / "out.zarr")


@pytest.mark.slow
def test_more_samples_than_31_bits_count(tmp_path: Path) -> None:
    """2.4e9 voxels, of which one chunk is stored, at the far end."""
    shape = (1200, 2000, 1000)
    source = stored(tmp_path / "in.zarr", some((2, 3, 4)), chunks=(1, 1, 1))
    group: Any = zarr.open_group(source, mode="r+")
    array = group.create_array(
        "full", shape=shape, chunks=(100, 500, 500), dtype="uint16", fill_value=3, overwrite=True
    )
    array[1199, 1999, 990:] = 90
    opened = open_zarr(source)
    assert opened.shape == shape
    found = opened.read(Box((1198, 1998, 985), (2, 2, 15)))
    assert found[1, 1].tolist() == [3] * 5 + [90] * 10
    assert (found[0] == 3).all()


@pytest.mark.parametrize("limit", [301 << 20, 320 << 20])
def test_too_little_memory(limit: int, tmp_path: Path) -> None:
    source = stored(tmp_path / "in.zarr", some(VOLUME))
    with pytest.raises(OutOfMemory, match=r"filter in\.zarr in blocks: the smallest takes"):
        run(source, tmp_path / "out.zarr", limit=limit)
    assert [path.name for path in tmp_path.iterdir()] == ["in.zarr"]


def test_reading_claims_the_chunks_that_it_decodes(tmp_path: Path) -> None:
    opened = open_zarr(stored(tmp_path / "in.zarr", some((20, 300, 300)), chunks=(20, 300, 300)))
    assert opened.working_bytes(Box((0, 0, 0), (1, 1, 1))) >= 2 * 2 * 20 * 300 * 300


ENDLESS = {
    "version": "0.4",
    "axes": [{"name": "y"}, {"name": "x"}],
    "datasets": [
        {"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [10**400, 1]}]}
    ],
}


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({}, "OME metadata are missing or damaged"),
        ({"multiscales": []}, "OME metadata are missing or damaged"),
        ({"multiscales": [ENDLESS]}, "OME metadata are missing or damaged"),
        ({"plate": {}}, "a collection of pictures"),
        ({"multiscales": [{"version": "0.3", "axes": ["y"], "datasets": [{}]}]}, "version 0.3"),
    ],
)
def test_other_metadata(attributes: dict[str, Any], message: str, tmp_path: Path) -> None:
    (tmp_path / "in.zarr").mkdir()
    (tmp_path / "in.zarr/.zgroup").write_text('{"zarr_format": 2}')
    (tmp_path / "in.zarr/.zattrs").write_text(json.dumps(attributes))
    with pytest.raises(ImageReadError, match=rf"in\.zarr: .*{message}"):
        open_source(tmp_path / "in.zarr")


@pytest.mark.parametrize("name", ["nothing.zarr", "no-json.zarr"])
def test_no_metadata_at_all(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    if name.startswith("no-json"):
        (tmp_path / name / "zarr.json").write_text("{")
    with pytest.raises(ImageReadError, match=rf"{name}: "):
        open_source(tmp_path / name)


def test_samples_of_another_type(tmp_path: Path) -> None:
    with pytest.raises(ImageReadError, match="samples are of type int64"):
        open_zarr(stored(tmp_path / "in.zarr", some(VOLUME).astype(np.int64)))


def test_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = stored(tmp_path / "in.zarr", some(VOLUME))
    tifffile.imwrite(tmp_path / "in.tif", some(VOLUME), photometric="minisblack")
    monkeypatch.setitem(__import__("sys").modules, "zarr", None)
    for pair in ((source, "out.tif"), (tmp_path / "in.tif", "out.zarr")):
        with pytest.raises(AppError, match="needs the package zarr") as caught:
            run(pair[0], tmp_path / pair[1])
        assert "[zarr]" in caught.value.hint


def test_spacing_needs_units() -> None:
    described: Any = attributes_of("0.5", [Axis(name) for name in "zyx"], [(1, 1, 1)])
    assert parsed(described).steps == {}
    steps = {"z": 3.0, "y": 2.0, "x": 1.0}
    along = described_by(Head(spacing=(3.0, 2.0, 1.0))).along
    described = attributes_of("0.4", along, [(1, 1, 1)])
    assert parsed(described).steps == steps
    described["multiscales"][0]["coordinateTransformations"] = [
        {"type": "scale", "scale": [2.0, 1.0, 1.0]}
    ]
    assert parsed(described).steps == {**steps, "z": 6.0}
    assert Head().ome is None


@pytest.mark.parametrize(("shape", "levels"), [((40, 300), 2), ((40, 256), 1), ((40, 1025), 4)])
def test_the_levels_of_a_pyramid_are_counted_as_they_are_written(
    tmp_path: Path, shape: tuple[int, int], levels: int
) -> None:
    """A record said that a pyramid is made anew where the result had a single level."""
    tifffile.imwrite(tmp_path / "in.tif", some(shape), photometric="minisblack")
    run(tmp_path / "in.tif", tmp_path / "out.zarr", Step.create("mean", {"size": 3}))
    assert len(list(zarr.open_group(tmp_path / "out.zarr", mode="r").array_keys())) == levels
    assert zarr_sink.level_count(Kind.PICTURE, (*shape, 1)) == levels
