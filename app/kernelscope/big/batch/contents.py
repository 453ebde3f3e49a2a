"""Files of a batch in memory: a picture or a volume, or all that a file holds of them."""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

from kernelscope.base.errors import SeveralVolumes
from kernelscope.big.batch.item import Handling, Item
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.steps import recipe_request
from kernelscope.files import (
    check_write,
    check_write_pages,
    read_image,
    read_pages,
    write_image,
    write_pages,
)
from kernelscope.files.formats import ONLY_FIRST
from kernelscope.files.picture_formats import writer_of
from kernelscope.files.volumes import (
    check_write_volume,
    check_write_volumes,
    is_volume,
    read_volume,
    write_volume,
    write_volumes,
)
from kernelscope.files.write_errors import explained
from kernelscope.images.image import Image
from kernelscope.images.levels import with_levels
from kernelscope.images.scan import Scan
from kernelscope.images.source import Source
from kernelscope.images.volume import Volume

_HEADER_BYTES, _VOXEL_BYTES = 1 << 29, 16
"""More than the header of a NIfTI file takes, and than a voxel does."""

_PART = 1 << 22  # bytes that are unpacked at a time


def read_sources(item: Item, handling: Handling) -> tuple[Source, ...]:
    """Return all that a file holds: a picture, pages, a volume, or volumes of one shape."""
    path, nan, levels = item.source, handling.nan, handling.levels
    if not item.slices and not is_volume(path):
        image = read_image(path, nan=nan)
        if any(notice.startswith(ONLY_FIRST) for notice in image.notices):
            return tuple(with_levels(page, levels) for page in read_pages(path, nan=nan))
        return (with_levels(image, levels),)
    try:
        volumes = [read_volume(path, nan=nan, slices=item.slices)]
    except SeveralVolumes as error:
        if not error.alike:
            raise
        volumes = _volumes(item, len(error.names), nan)
    if handling.as_float:
        volumes = [each.with_voxels(each.voxels, as_float=True) for each in volumes]
    return tuple(Scan((with_levels(each, levels),)) for each in volumes)


def _volumes(item: Item, count: int, nan: float | None) -> list[Volume]:
    """Return the volumes of a file; a packed one is unpacked once, and not for each of them."""
    path, read = item.source, partial(read_volume, nan=nan, slices=item.slices)
    first = read(path, 1)
    if not path.name.lower().endswith(".gz"):
        others = [read(path, number) for number in range(2, count + 1)]
        return [first, *others]
    with tempfile.TemporaryDirectory(prefix="kernelscope-") as folder:
        plain = Path(folder, path.name[: -len(".gz")])
        most = _HEADER_BYTES + count * first.voxels.size * _VOXEL_BYTES
        with gzip.open(path) as packed, plain.open("wb") as unpacked:
            while most > 0 and (part := cast(BinaryIO, packed).read(min(_PART, most))):
                most -= unpacked.write(part)
        return [read(plain, number) for number in range(1, count + 1)]


def check_results(
    sources: Sequence[Source], recipe: Recipe, target: Path, handling: Handling
) -> None:
    """Refuse, before a long run, results that could not be written after it."""
    with explained(target):
        target.parent.mkdir(parents=True, exist_ok=True)
    first = sources[0]
    if isinstance(first, Scan):
        check_write_volume(first.volumes[0], target, lossy=handling.lossy)
        if len(sources) > 1:
            volumes = [each.volumes[0] for each in sources if isinstance(each, Scan)]
            check_write_volumes(volumes, target)
    elif isinstance(first, Image):
        for each in sources:
            assert isinstance(each, Image)
            shape = recipe_request(recipe, each).whole_shape
            check_write(target, shape, each.pixels.dtype, lossy=handling.lossy)
        if len(sources) > 1:
            check_write_pages(target)


def write_results(results: Sequence[Source], target: Path, handling: Handling) -> None:
    """Write the results of all that a file held to a file of the same kind."""
    pictures = [each for each in results if isinstance(each, Image)]
    volumes = [each.volumes[0] for each in results if isinstance(each, Scan)]
    if len(pictures) > 1:
        write_pages(pictures, target)
    elif pictures:
        write_image(pictures[0], target, lossy=handling.lossy, quality=_quality(target, handling))
    elif len(volumes) > 1:
        write_volumes(volumes, target)
    else:
        write_volume(volumes[0], target, lossy=handling.lossy)


def _quality(target: Path, handling: Handling) -> int | None:
    writer = writer_of(target.suffix.lower())
    return handling.quality if writer is not None and writer.encode_at is not None else None


def describe_size(sources: Sequence[Source]) -> str:
    """Return ``640×480``, or ``640×480, 12 pictures``; of several, the size of the first."""
    *sides, _ = sources[0].shape
    size = "×".join(str(side) for side in reversed(sides))
    if len(sources) == 1:
        return size
    return f"{size}, {len(sources)} {'pictures' if isinstance(sources[0], Image) else 'volumes'}"
