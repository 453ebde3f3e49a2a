"""Names of files: stems, writable suffixes, and names for several volumes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from kernelscope.base.errors import ImageWriteError
from kernelscope.files.formats import Format
from kernelscope.files.picture_formats import READABLE
from kernelscope.files.volumes import READABLE_VOLUMES, beside
from kernelscope.files.volumes.volume_formats import ZARR
from kernelscope.images.image import Image
from kernelscope.images.volume import Volume

_MOST_NAMED = 3  # steps that a file name has room for


def targets_of(images: Sequence[Image | Volume], path: Path) -> list[Path]:
    """Return where to write `images`: the first to `path`, further volumes next to it."""
    targets = [path]
    for number, image in enumerate(images[1:], 2):
        title = stem_of(image)
        # Some systems do not distinguish names that differ only in case.
        taken = {target.name.casefold() for target in targets}
        while beside(path, title).name.casefold() in taken:
            title = f"{number}-{title}"
        targets.append(beside(path, title))
    return targets


def with_suffix(path: Path, kind: Format, writable: tuple[Format, ...]) -> Path:
    """Return `path` with a suffix that can be written: its own, or the default of `kind`.

    Raises `ImageWriteError` if it is the suffix of another format.
    """
    name, suffixes = path.name.lower(), [each for kind in writable for each in kind.suffixes]
    if name.endswith(tuple(suffixes)):
        return path
    for other in (ZARR.format, *READABLE_VOLUMES, *READABLE):
        if name.endswith(other.suffixes):
            way = f"Use one of {', '.join(dict.fromkeys(suffixes))}."
            if other is ZARR.format:
                way += " File > Filter in Blocks writes OME-Zarr."
            raise ImageWriteError(f"{path.name}: {other.name} is not written here.", way)
    return path.with_name(path.name + kind.suffixes[0])


def name_of_steps(filters: Iterable[str]) -> str:
    """Return the part of a file name for the steps that made the file, by their filters."""
    names = list(filters)
    return "-".join(names) if len(names) <= _MOST_NAMED else f"{len(names)}_steps"


def stem_of(image: Image | Volume) -> str:
    """Return the base name, without suffix, of files made from a picture or volume.

    One volume of several has its place in the name: ``film-time-2-DAPI``. One without a file, such
    as a phantom, gets a name that suits a file: ``Phantom-T1w``.
    """
    if isinstance(image, Image):  # a picture that was computed has the title of a file
        return stem(Path(image.title))
    if image.path is None:
        return _plain(f"{image.title} {image.place}")
    return "-".join(filter(None, (stem(Path(image.title)), _plain(image.place))))


def _plain(name: str) -> str:
    return re.sub(r"[^\w.+-]+", "-", name).strip("-")


def stem(path: Path) -> str:
    return Path(path.name.removesuffix(".gz")).stem.removesuffix(".ome")
