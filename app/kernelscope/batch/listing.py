"""The files of a batch: where each comes from, and where its result goes."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from kernelscope.batch.item import JOURNAL, Item
from kernelscope.errors import AppError
from kernelscope.files import READABLE, WRITABLE
from kernelscope.files.volumes import READABLE_VOLUMES, WRITABLE_VOLUMES

_READABLE = tuple(
    suffix for kind in (*READABLE, *READABLE_VOLUMES) for suffix in kind.suffixes if suffix
)
_WRITABLE = tuple(
    suffix for kind in (*WRITABLE, *WRITABLE_VOLUMES) for suffix in kind.suffixes if suffix
)

USUAL = ".tif"
"""Suffix of results of files whose own format is not written: it holds all types, and volumes."""


@dataclass
class Found:
    """The files of a batch.

    Attributes
    ----------
    items : list of Item
    left_out : int
        Files in folders whose suffix is of no format that can be read.
    problems : list of (Path, str)
        Folders that cannot be looked into, with the reason.
    """

    items: list[Item] = field(default_factory=list)
    left_out: int = 0
    problems: list[tuple[Path, str]] = field(default_factory=list)


def find_items(
    inputs: Sequence[Path],
    out: Path,
    suffix: str | None = None,
    references: Path | None = None,
) -> Found:
    """Return the files that `inputs` name, folders with all below them, and their targets.

    A file that is named twice, also through a link, is there once. Files in a folder keep their
    places below it. Where names would collide, they keep the folders from which the inputs part,
    and, where they differ in their suffix alone, that as well: ``a.png.tif``.

    Parameters
    ----------
    inputs : sequence of Path
        Files, and folders; `out`, if it lies in one, is left out.
    suffix : str, optional
        Of all targets; by default each file's own, or `USUAL` if that format is not written.
    references : Path, optional
        Folder of references, at the places of their files; only their suffixes may differ.

    Raises
    ------
    AppError
        If there is nothing to filter, `suffix` names no format, or `references` is no folder.
    """
    if references is not None and not references.is_dir():
        raise AppError(f"{references}: there is no such folder.", "Name one with references.")
    if suffix is not None and not suffix.lower().endswith(_WRITABLE):
        raise AppError(
            f"“{suffix}” is no suffix of a format that can be written.",
            f"Use one of {', '.join(dict.fromkeys(_WRITABLE))}.",
        )
    found, listed, seen = Found(), list[tuple[Path, PurePath]](), set[str]()
    for given in inputs:
        for path, place in _files(given, out, found):
            real = os.path.realpath(path)
            if real not in seen:
                seen.add(real)
                listed.append((path, place))
    if not listed:
        names = ", ".join(f"“{each}”" for each in inputs[:3])
        raise AppError(
            f"There is no picture or volume in {names}.", "Name files, or folders with some."
        )
    library = _References(references) if references is not None else None
    for (path, own), place in zip(listed, _places(listed, suffix), strict=True):
        reference = library.of(own) if library is not None else None
        found.items.append(Item(path, out / place, reference))
    return found


class _References:
    """The files of a folder, by their places without suffixes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[Path, dict[str, Path]] = {}

    def of(self, place: PurePath) -> Path | None:
        """Return the reference of a file; that of the same suffix, if there are several."""
        same = self._folder / place
        return same if same.is_file() else self._stems(same.parent).get(_stem(place))

    def _stems(self, folder: Path) -> dict[str, Path]:
        if folder not in self._known:
            files = sorted(folder.iterdir(), reverse=True) if folder.is_dir() else []
            self._known[folder] = {
                _stem(file): file for file in files if file.name.lower().endswith(_READABLE)
            }
        return self._known[folder]


def _stem(place: PurePath) -> str:
    return place.name[: len(place.name) - len(_end(place))]


def _files(given: Path, out: Path, found: Found) -> Iterator[tuple[Path, PurePath]]:
    """Yield the files that an input names, with their places below it."""
    if not given.is_dir():
        yield given, PurePath(given.name)
        return
    outside, visited = os.path.realpath(out), set[str]()

    def note(error: OSError) -> None:
        found.problems.append((Path(error.filename or given), error.strerror or str(error)))

    for folder, below, files in os.walk(given, onerror=note, followlinks=True):
        real = os.path.realpath(folder)
        if real in visited or real == outside:  # a link leads back, or to the results
            below.clear()
            continue
        visited.add(real)
        below.sort()
        for name in sorted(files):
            if name.lower().endswith(_READABLE) and not name.startswith("."):
                path = Path(folder, name)
                yield path, path.relative_to(given)
            elif name != JOURNAL:
                found.left_out += 1


def _places(listed: Sequence[tuple[Path, PurePath]], suffix: str | None) -> list[PurePath]:
    """Return the place of each result below the output folder; no two are the same."""
    places = [_renamed(place, suffix) for _, place in listed]
    if _distinct(places):
        return places
    absolute = [path.absolute() for path, _ in listed]
    try:
        common = os.path.commonpath([path.parent for path in absolute])
    except ValueError:  # on different drives
        common = ""
    whole = [path.relative_to(common) if common else PurePath(*path.parts[1:]) for path in absolute]
    places = [_renamed(place, suffix) for place in whole]
    often, taken, result = Counter(map(_key, places)), set[str](), list[PurePath]()
    for renamed, place in zip(places, whole, strict=True):
        if often[_key(renamed)] > 1:
            renamed = renamed.with_name(f"{place.name}{_end(renamed)}")
        number, free = 1, renamed
        while _key(free) in taken:  # only their capitals differ
            number += 1
            free = renamed.with_name(f"{number}-{renamed.name}")
        taken.add(_key(free))
        result.append(free)
    return result


def _key(place: PurePath) -> str:
    """Return the name by which systems that ignore case tell files from each other."""
    return str(place).casefold()


def _distinct(places: Sequence[PurePath]) -> bool:
    return len(set(map(_key, places))) == len(places)


def _renamed(place: PurePath, suffix: str | None) -> PurePath:
    """Return the name of the result of a file."""
    own = _end(place)
    wanted = suffix or (own if own.lower() in _WRITABLE else USUAL)
    return place.with_name(place.name[: len(place.name) - len(own)] + wanted)


def _end(place: PurePath) -> str:
    """Return the suffix of a name: the longest that a format has, such as ``.nii.gz``."""
    name = place.name.lower()
    ends = [each for each in (*_READABLE, *_WRITABLE) if name.endswith(each)]
    length = max(map(len, ends), default=len(place.suffix))
    return place.name[len(place.name) - length :]
