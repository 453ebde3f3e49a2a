"""OME-Zarr folders that claim, unpack to, or reach for more than they hold."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
import zarr

from kernelscope.base.errors import ImageReadError
from kernelscope.files.volumes.zarr_source import open_zarr
from kernelscope.schema.crop import Box
from tests.foreign import posix

SHAPE = (64, 64)
SAMPLES = np.arange(SHAPE[0] * SHAPE[1], dtype=np.uint16).reshape(SHAPE)
BOMB = bytes(1 << 28)
MOST_MEMORY = 1 << 24


def made(folder: Path, version: str, path: str = "0", **how: Any) -> Path:
    """Write a picture, in one chunk unless `how` says otherwise."""
    multiscale = {
        "axes": [{"name": name, "type": "space"} for name in "yx"],
        "datasets": [{"path": path, "coordinateTransformations": []}],
    }
    attributes: dict[str, Any] = {"multiscales": [{"version": "0.4", **multiscale}]}
    if version == "0.5":
        attributes = {"ome": {"version": "0.5", "multiscales": [multiscale]}}
    number = 3 if version == "0.5" else 2
    group = zarr.create_group(folder, zarr_format=number, attributes=attributes)
    group.create_array("0", data=SAMPLES, chunks=how.pop("chunks", SHAPE), **how)
    return folder


def changed(folder: Path, version: str, change: Callable[[dict[str, Any]], object]) -> Path:
    """Change the metadata of the array."""
    file = folder / "0" / ("zarr.json" if version == "0.5" else ".zarray")
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))
    return folder


def read(folder: Path) -> Any:
    source = open_zarr(folder)
    return source.read(Box((0, 0, 0), source.shape))[..., 0]


def declared(shape: int, chunk: int) -> Callable[[dict[str, Any]], None]:
    def change(content: dict[str, Any]) -> None:
        content["shape"] = [shape, shape]
        if "chunk_grid" in content:
            content["chunk_grid"]["configuration"]["chunk_shape"] = [chunk, chunk]
        else:
            content["chunks"] = [chunk, chunk]

    return change


@pytest.mark.parametrize("version", ["0.4", "0.5"])
@pytest.mark.parametrize(
    ("shape", "chunk", "message"),
    [
        (10**6, 10**6, "a chunk of it is to have 2000 GB"),
        (10**6, 10**4, r"is to have 2000 GB, but its files hold [\d,]+ bytes"),
        (2**31, 1, r"is to have 4\.612e\+18 chunks"),
        (2**31, 2**12, "is to have"),
        (2**62, 2**62, "a chunk of it is to have"),
        (10**6, 0, r"OME-Zarr data are damaged|a chunk of it"),
    ],
)
def test_a_size_that_the_files_do_not_explain(
    tmp_path: Path, version: str, shape: int, chunk: int, message: str
) -> None:
    folder = changed(made(tmp_path / "a.zarr", version), version, declared(shape, chunk))
    tracemalloc.start()
    with pytest.raises(ImageReadError, match=message):
        open_zarr(folder)
    assert tracemalloc.get_traced_memory()[1] < MOST_MEMORY
    tracemalloc.stop()


@pytest.mark.parametrize(
    "shards", [None, (64, 64), (128, 64)], ids=["unsharded", "one shard", "larger shard"]
)
@pytest.mark.parametrize("compressor", ["blosc", "gzip", "zstd", "none"])
def test_every_codec_that_is_allowed_reads_as_before(
    tmp_path: Path, compressor: str, shards: tuple[int, int] | None
) -> None:
    kinds = {
        "blosc": zarr.codecs.BloscCodec(),
        "gzip": zarr.codecs.GzipCodec(),
        "zstd": [zarr.codecs.ZstdCodec(), zarr.codecs.Crc32cCodec()],
        "none": None,
    }
    how = {"compressors": kinds[compressor], "shards": shards, "chunks": (16, 32)}
    folder = made(tmp_path / "a.zarr", "0.5", **how)
    np.testing.assert_array_equal(read(folder), SAMPLES)


@pytest.mark.parametrize("codec", ["Blosc", "BZ2", "GZip", "LZ4", "Zlib", "Zstd"])
def test_every_codec_of_zarr_2_that_is_allowed_reads_as_before(tmp_path: Path, codec: str) -> None:
    compressor = getattr(numcodecs, codec)()
    folder = made(
        tmp_path / "a.zarr", "0.4", compressors=compressor, filters=[numcodecs.Shuffle(2)]
    )
    np.testing.assert_array_equal(read(folder), SAMPLES)


@pytest.mark.slow
@pytest.mark.parametrize("codec", ["Blosc", "BZ2", "GZip", "LZ4", "Zlib", "Zstd"])
def test_a_chunk_that_unpacks_to_more_than_its_samples(tmp_path: Path, codec: str) -> None:
    compressor = getattr(numcodecs, codec)()
    folder = made(tmp_path / "a.zarr", "0.4", compressors=compressor)
    (folder / "0" / "0.0").write_bytes(compressor.encode(BOMB))
    source = open_zarr(folder)
    tracemalloc.start()
    with pytest.raises(ImageReadError, match=r"a\.zarr: chunk 0\.0: (a chunk unpacks|it has) "):
        source.read(Box((0, 0, 0), source.shape))
    assert tracemalloc.get_traced_memory()[1] < MOST_MEMORY
    tracemalloc.stop()


def test_gzip_of_several_members_is_counted_together(tmp_path: Path) -> None:
    folder = made(tmp_path / "a.zarr", "0.4", compressors=numcodecs.GZip())
    (folder / "0" / "0.0").write_bytes(gzip.compress(bytes(8192)) * 2)
    with pytest.raises(ImageReadError, match="unpacks to more than its 8,192 bytes"):
        read(folder)


def test_a_chunk_of_a_shard_that_unpacks_to_more(tmp_path: Path) -> None:
    codec = zarr.codecs.GzipCodec()
    folder = made(tmp_path / "a.zarr", "0.5", chunks=(32, 64), shards=SHAPE, compressors=codec)
    (chunk,) = (folder / "0" / "c").rglob("0/0")
    bomb = gzip.compress(bytes(8192))
    assert len(bomb) < 4096
    index = np.array([[0, len(bomb)], [0, len(bomb)]], "<u8").tobytes()
    chunk.write_bytes(bomb + index + bytes(4))
    with pytest.raises(ImageReadError, match="unpacks to more than its 4,096 bytes"):
        read(folder)


class _Touch:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("place", ["filters", "compressor"])
def test_a_codec_that_unpickles_is_not_run(tmp_path: Path, place: str) -> None:
    def change(content: dict[str, Any]) -> None:
        settings = {"id": "pickle", "protocol": 5}
        content[place] = [settings] if place == "filters" else settings
        if place == "filters":
            content["compressor"] = None

    folder = changed(made(tmp_path / "a.zarr", "0.4"), "0.4", change)
    (folder / "0" / "0.0").write_bytes(pickle.dumps(_Touch(tmp_path / "ran")))
    with pytest.raises(ImageReadError, match="codec “pickle” is not among those that are read"):
        read(folder)
    assert not (tmp_path / "ran").exists()


def test_an_unknown_codec_of_zarr_3_is_refused(tmp_path: Path) -> None:
    folder = changed(
        made(tmp_path / "a.zarr", "0.5"),
        "0.5",
        lambda content: content["codecs"].append({"name": "vlen-utf8"}),
    )
    with pytest.raises(ImageReadError, match="codec “vlen-utf8” is not among"):
        read(folder)


@pytest.mark.parametrize("version", ["0.4", "0.5"])
@pytest.mark.parametrize("how", ["..", "absolute", "a link"])
def test_a_path_out_of_the_folder_is_refused(tmp_path: Path, version: str, how: str) -> None:
    secret = made(tmp_path / "secret.zarr", version) / "0"
    path = {"..": "../secret.zarr/0", "absolute": str(secret), "a link": "link"}[how]
    folder = made(tmp_path / "a.zarr", version, path)
    if how == "a link":
        (folder / "link").symlink_to(secret)
    with pytest.raises(ImageReadError, match="from outside of the folder"):
        open_zarr(folder)


@posix
@pytest.mark.parametrize("version", ["0.4", "0.5"])
@pytest.mark.parametrize("name", ["chunk", "metadata", "attributes"])
def test_a_link_out_of_the_folder_is_refused(tmp_path: Path, version: str, name: str) -> None:
    folder = made(tmp_path / "a.zarr", version)
    new = version == "0.5"
    place = {
        "chunk": "0/c/0/0" if new else "0/0.0",
        "metadata": "0/zarr.json" if new else "0/.zarray",
        "attributes": "zarr.json" if new else ".zattrs",
    }[name]
    (folder / place).rename(tmp_path / "elsewhere")
    (folder / place).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ImageReadError, match="from outside of the folder"):
        read(folder)


@posix
def test_a_link_to_the_folder_and_links_in_it_are_followed(tmp_path: Path) -> None:
    folder = made(tmp_path / "a.zarr", "0.4")
    (folder / "0" / "0.0").rename(folder / "0" / "moved")
    (folder / "0" / "0.0").symlink_to("moved")
    (tmp_path / "b.zarr").symlink_to(folder)
    np.testing.assert_array_equal(read(tmp_path / "b.zarr"), SAMPLES)


@posix
def test_a_circle_of_links_is_refused(tmp_path: Path) -> None:
    folder = made(tmp_path / "a.zarr", "0.4")
    (folder / "0" / "0.0").unlink()
    (folder / "0" / "0.0").symlink_to("0.0")
    with pytest.raises(ImageReadError, match="Too many levels of symbolic links"):
        read(folder)


def test_metadata_of_any_length_are_not_read(tmp_path: Path) -> None:
    folder = made(tmp_path / "a.zarr", "0.4")
    with (folder / ".zattrs").open("ab") as handle:
        handle.truncate(1 << 30)
    with pytest.raises(ImageReadError, match=r"its \.zattrs is larger than 16 MiB"):
        open_zarr(folder)


def test_zlib_of_a_stream_that_is_cut_off(tmp_path: Path) -> None:
    folder = made(tmp_path / "a.zarr", "0.4", compressors=numcodecs.Zlib())
    (folder / "0" / "0.0").write_bytes(zlib.compress(SAMPLES.tobytes())[:-20])
    with pytest.raises(ImageReadError, match="damaged or cut off"):
        read(folder)


@pytest.mark.parametrize("codec", ["Blosc", "BZ2", "GZip", "LZ4", "Zlib", "Zstd"])
@pytest.mark.parametrize("kind", ["noise", "zeros", "empty", "one byte", "start only", "flipped"])
def test_a_chunk_that_its_codec_does_not_know(tmp_path: Path, codec: str, kind: str) -> None:
    """The exceptions of zlib have no common base with those of others."""
    compressor = getattr(numcodecs, codec)()
    folder = made(tmp_path / "a.zarr", "0.4", compressors=compressor)
    whole = bytes(compressor.encode(SAMPLES))
    data = {
        "noise": np.random.default_rng(1).bytes(500),
        "zeros": bytes(500),
        "empty": b"",
        "one byte": whole[:1],
        "start only": whole[: len(whole) // 3],
        "flipped": whole[:20] + bytes(each ^ 255 for each in whole[20:40]) + whole[40:],
    }
    (folder / "0" / "0.0").write_bytes(data[kind])
    with pytest.raises(ImageReadError, match=r"a\.zarr: chunk 0\.0: "):
        read(folder)


@pytest.mark.parametrize("left", [0, 1, 30, 200])
@pytest.mark.parametrize("place", ["start", "end"])
def test_a_shard_that_is_shorter_than_its_index(tmp_path: Path, left: int, place: str) -> None:
    folder = made(tmp_path / "a.zarr", "0.5", shards=(64, 64), chunks=(16, 16))
    if place == "start":
        metadata = folder / "0" / "zarr.json"
        content = json.loads(metadata.read_text())
        content["codecs"][0]["configuration"]["index_location"] = "start"
        metadata.write_text(json.dumps(content))
    shard = folder / "0" / "c" / "0" / "0"
    shard.write_bytes(shard.read_bytes()[:left])
    with pytest.raises(ImageReadError, match="damaged or cut off"):
        read(folder)
