"""Files of a batch in memory: a picture or a volume, or all that a file holds of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kernelscope.big.batch.item import Handling, Item
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.steps import recipe_request
from kernelscope.files import (
    check_write,
    check_write_pages,
    is_one_of_several,
    read_image,
    read_pages,
    write_image,
    write_pages,
)
from kernelscope.files.picture_formats import writer_of
from kernelscope.files.volumes import (
    check_write_volume,
    check_write_volumes,
    is_volume,
    read_volumes,
    write_volume,
    write_volumes,
)
from kernelscope.files.write_errors import explained
from kernelscope.images.image import Image
from kernelscope.images.levels import with_levels
from kernelscope.images.scan import Scan
from kernelscope.images.source import Source


def read_sources(item: Item, handling: Handling) -> tuple[Source, ...]:
    """Return all that a file holds: a picture, pages, a volume, or volumes of one shape."""
    path, nan, levels = item.source, handling.nan, handling.levels
    if not item.slices and not is_volume(path):
        image = read_image(path, nan=nan)
        pages = read_pages(path, nan=nan) if is_one_of_several(image) else [image]
        return tuple(with_levels(page, levels) for page in pages)
    named = path.parent if item.by_folder else path
    volumes = read_volumes(named, nan=nan, slices=item.slices)
    if handling.as_float:
        volumes = [each.with_voxels(each.voxels, as_float=True) for each in volumes]
    return tuple(Scan((with_levels(each, levels),)) for each in volumes)


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
    *sides, _ = sources[0].shape
    size = "×".join(str(side) for side in reversed(sides))
    if len(sources) == 1:
        return size
    return f"{size}, {len(sources)} {'pictures' if isinstance(sources[0], Image) else 'volumes'}"
