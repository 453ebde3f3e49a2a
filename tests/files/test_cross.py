"""The same content in every container and by every face: numbers, type, size, place and record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pytest
import tifffile
from numpy.typing import NDArray

import kernelscope as ks
from kernelscope.cli.main import main
from kernelscope.files import read_image, write_image
from kernelscope.files.volumes import read_volume, write_volume
from kernelscope.files.volumes.writing import record_of
from kernelscope.images.image import Image, Metadata
from kernelscope.images.volume import Volume
from tests.files.test_volumes_dicom import write as write_slice

pytestmark = pytest.mark.usefixtures("closed_session")

RECIPE = '{"format": "kernelscope recipe", "version": 2, "steps": [{"filter": "median"}]}'
SPACING = (7e-4, 3e-4, 2e-4)
RESOLUTION = (25.4 / 0.0254, 25.4 / 0.0508)
AFFINE = np.array([[0, 3e-4, 0, 5], [-2e-4, 0, 0, 6], [0, 0, 7e-4, 7], [0, 0, 0, 1.0]])
TYPES = ["uint8", "uint16", "int16", "float32"]
_TYPES = {
    "a.png": "uint8 uint16",
    "b.png": "uint8 uint16",
    "a.bmp": "uint8",
    "a.webp": "uint8",
}
"""Types that pictures of a format have, where these are not all."""


def stack(dtype: str) -> NDArray[Any]:
    """Return numbers that the median of slices finds again in every type, whatever its scale."""
    values = np.random.default_rng(7).integers(0, 120, (4, 12, 10))
    return (values - 60 if dtype == "int16" else values).astype(dtype)


def picture(dtype: str, channels: int) -> NDArray[Any]:
    shape = (12, 10) if channels == 1 else (12, 10, channels)
    top = 255 if dtype == "uint8" else 65_535
    values = np.random.default_rng(8).integers(0, top + 1, shape)
    return (values / top).astype(dtype) if dtype == "float32" else values.astype(dtype)


def _zarr(path: Path, array: NDArray[Any]) -> None:
    import zarr

    group = zarr.open_group(path, mode="w", zarr_format=2)
    group.create_array("0", shape=array.shape, dtype=array.dtype, chunks=(1, 8, 8))[:] = array
    scale = [step * 1e3 for step in SPACING]
    axes = [{"name": name, "type": "space", "unit": "micrometer"} for name in "zyx"]
    transform = {"type": "scale", "scale": scale}
    data = [{"path": "0", "coordinateTransformations": [transform]}]
    group.attrs["multiscales"] = [{"version": "0.4", "axes": axes, "datasets": data}]


def container(path: Path, array: NDArray[Any]) -> Path:
    """Write a stack, with its spacing where the format has one, mostly not by this program."""
    name, sizes = path.name, dict(zip("ZYX", SPACING, strict=True))
    if name.endswith(".zarr"):
        _zarr(path, array)
    elif name == "a.ome.tif":
        described = {f"PhysicalSize{axis}": step * 1e3 for axis, step in sizes.items()}
        tifffile.imwrite(
            path, array, ome=True, photometric="minisblack", metadata={"axes": "ZYX", **described}
        )
    elif name == "imagej.tif":
        tifffile.imwrite(
            path,
            array,
            imagej=True,
            resolution=(1e-3 / SPACING[2], 1e-3 / SPACING[1]),
            metadata={"axes": "ZYX", "spacing": SPACING[0] * 1e3, "unit": "micron"},
        )
    elif name.endswith((".nii", ".nii.gz")):
        made = nibabel.Nifti1Image(array.T, None)
        made.header.set_zooms(SPACING[::-1])
        made.header.set_xyzt_units("mm")
        nibabel.save(made, path)
    elif name.endswith(".npy"):
        np.save(path, array)
    else:
        write_volume(Volume.from_array(array, spacing=SPACING), path)
    return path


def by_apply(source: Path, target: Path, *more: str) -> None:
    assert main(["apply", "median", str(source), str(target), "--quiet", *more]) == 0


def by_blocks(source: Path, target: Path) -> None:
    ks.Recipe.from_json(RECIPE).apply_file(source, target, memory="64G")


def by_library(source: Path, target: Path) -> None:
    volume = read_volume(source)
    made = ks.Recipe.from_json(RECIPE)(volume.unscaled, volume=True)
    write_volume(volume.with_voxels(made), target, lossy=True)


def held(target: Path) -> tuple[NDArray[Any], Any]:
    """Return voxels and spacing of a result, as other programs read them where there are some."""
    if target.name.endswith(".zarr"):
        import zarr

        group = zarr.open_group(target, mode="r")
        attributes: Any = dict(group.attrs)
        scale = attributes.get("ome", attributes)["multiscales"][0]
        steps = scale["datasets"][0]["coordinateTransformations"][0]["scale"]
        units = [{"micrometer": 1e-3, "millimeter": 1.0}[axis["unit"]] for axis in scale["axes"]]
        return np.asarray(group["0"]), tuple(np.multiply(steps, units))
    volume = read_volume(target)
    return volume.unscaled, volume.spacing if volume.stated else None


WHOLE = ["a.ome.tif", "a.tif", "imagej.tif", "a.nii", "a.nii.gz", "a.npy"]
BLOCKS = ["a.ome.tif", "a.tif", "imagej.tif", "a.zarr"]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    ("source", "face", "target"),
    [
        *((source, by_apply, target) for source in WHOLE for target in ("b.ome.tif", "b.nii.gz")),
        *((source, by_library, target) for source in WHOLE for target in ("b.tif", "b.npy")),
        *((source, by_blocks, f"b{end}") for source in BLOCKS for end in (".ome.tif", ".zarr")),
    ],
)
def test_volumes(tmp_path: Path, source: str, face: Any, target: str, dtype: str):
    if source == "imagej.tif" and dtype == "int16":
        pytest.skip("ImageJ has no such type")
    array = stack(dtype)
    face(container(tmp_path / source, array), tmp_path / target)
    voxels, spacing = held(tmp_path / target)
    assert voxels.dtype == dtype
    np.testing.assert_allclose(voxels, ks.median(array, axis="z"), rtol=1e-6)
    known = not source.endswith(".npy") and not target.endswith(".npy")
    assert spacing == (pytest.approx(SPACING, rel=1e-6) if known else None)


@pytest.mark.parametrize("source", WHOLE)
@pytest.mark.parametrize("target", ["b.ome.tif", "b.tif", "b.nii", "b.npy", "b.tifs"])
def test_the_record_of_volumes(
    tmp_path: Path, source: str, target: str, capsys: pytest.CaptureFixture[str]
):
    path = container(tmp_path / source, stack("uint16"))
    names = [str(path), str(tmp_path / target)]
    assert main(["apply", "median", *names, "--json", "--lossy"]) == 0
    record = json.loads(capsys.readouterr().out)["record"]
    keeps = "kept" if target in ("b.ome.tif", "b.tif", "b.nii") else "lost"
    assert ("the distance of voxels" in record[keeps]) == (source != "a.npy")
    assert ("they are taken for cubes" in " ".join(record["changed"])) == (source == "a.npy")


def test_orientation_and_position(tmp_path: Path):
    array = stack("int16")
    place = Volume.from_array(array, spacing=SPACING, affine=AFFINE)
    path = write_volume(place, tmp_path / "a.nii.gz")
    by_apply(path, tmp_path / "b.nii")
    again = read_volume(tmp_path / "b.nii")
    assert again.affine is not None
    np.testing.assert_allclose(again.affine, AFFINE, rtol=1e-6)
    assert again.orientation == read_volume(path).orientation
    by_apply(path, tmp_path / "b.ome.tif", "--lossy")
    assert read_volume(tmp_path / "b.ome.tif").spacing == pytest.approx(SPACING)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16"])
@pytest.mark.parametrize("face", [by_apply, by_library])
@pytest.mark.parametrize("target", ["b.nii.gz", "b.nii"])
def test_dicom(tmp_path: Path, face: Any, target: str, dtype: str):
    array = stack(dtype)
    (tmp_path / "series").mkdir()
    for number, plane in enumerate(array):
        write_slice(tmp_path / f"series/IM{number}", plane, number)
    face(tmp_path / "series", tmp_path / target)
    source, made = read_volume(tmp_path / "series"), read_volume(tmp_path / target)
    assert made.affine is not None
    assert source.affine is not None
    np.testing.assert_array_equal(made.voxels, ks.median(array, axis="z"))
    assert made.voxels.dtype == source.voxels.dtype
    np.testing.assert_allclose(made.affine, source.affine, rtol=1e-6)
    assert made.spacing == pytest.approx((2.5, 0.5, 0.75))
    assert made.orientation == source.orientation
    assert record_of(tmp_path / target, source).lost == ("DICOM tags",)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
@pytest.mark.parametrize("source", ["a.png", "a.bmp", "a.tif", "a.ome.tif", "a.webp"])
@pytest.mark.parametrize("target", ["b.png", "b.tif", "b.ome.tif"])
def test_pictures(tmp_path: Path, source: str, target: str, dtype: str, channels: int):
    if any(dtype not in _TYPES.get(name, dtype) for name in (source, target)):
        pytest.skip("the format has no such type")
    if source == "a.webp" and channels == 1:
        pytest.skip("it has no grey")
    pixels = picture(dtype, channels)
    image = Image.from_array(pixels, metadata=Metadata(resolution=RESOLUTION))
    path = write_image(image, tmp_path / source)
    by_apply(path, tmp_path / target)
    made = read_image(tmp_path / target)
    assert made.dtype == dtype
    np.testing.assert_array_equal(made.pixels, ks.median(pixels))
    if source != "a.webp":
        assert made.metadata.resolution == pytest.approx(RESOLUTION, rel=1e-4)
    if source.endswith(".tif") and target.endswith(".tif"):
        by_blocks(path, tmp_path / f"blocks-{target}")
        blocks = read_image(tmp_path / f"blocks-{target}")
        np.testing.assert_array_equal(blocks.pixels, made.pixels)
        assert blocks.metadata == made.metadata
