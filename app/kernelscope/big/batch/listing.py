"""The files of a batch: where each comes from, and where its result goes."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from kernelscope.base.errors import AppError
from kernelscope.big.batch.item import JOURNAL, Item
from kernelscope.big.batch.journal import earlier_results
from kernelscope.files import READABLE, WRITABLE
from kernelscope.files.volumes import (
    DICOM,
    READABLE_VOLUMES,
    WRITABLE_VOLUMES,
    DicomFiles,
    DicomSeries,
    dicom_files,
    is_dicom,
)
from kernelscope.files.volumes.zarr_source import is_zarr

_READABLE = tuple(
    suffix for kind in (*READABLE, *READABLE_VOLUMES) for suffix in kind.suffixes if suffix
)
_WRITABLE = tuple(
    suffix for kind in (*WRITABLE, *WRITABLE_VOLUMES) for suffix in kind.suffixes if suffix
)

USUAL, USUAL_VOLUME = ".tif", ".nii.gz"
"""Suffixes of results of files whose own format is not written: TIFF holds all types, and NIfTI
the place of a DICOM series as well."""

_NAMELESS = "series"  # name of a series that has no name, nor its folder


@dataclass
class FoundFiles:
    items: list[Item] = field(default_factory=list)
    left_out: int = 0  # files in folders that are of no format that can be read
    earlier: int = 0  # results that an earlier batch made of other files that are listed
    problems: list[tuple[Path, str]] = field(default_factory=list)
    """Folders that cannot be looked into, with the reason."""

    @property
    def remarks(self) -> list[str]:
        reasons = {
            "of no format that can be read.": self.left_out,
            "results of an earlier batch of these files. Name them alone to filter them again.": (
                self.earlier
            ),
        }
        return [
            f"{count} {'file is' if count == 1 else 'files are'} left out: {reason}"
            for reason, count in reasons.items()
            if count
        ]


def find_items(
    inputs: Sequence[Path],
    out: Path,
    suffix: str | None = None,
    references: Path | None = None,
) -> FoundFiles:
    """Return the files that `inputs` name, folders with all below them, and their targets.

    A file that is named twice, also through a link, is there once. Files in a folder keep their
    places below it. Where names would collide, they keep the folders from which the inputs part,
    and, where they differ in their suffix alone, that as well: ``a.png.tif``. Those that differ in
    capitals alone get a number, as some systems take them for one.

    The slices of a DICOM series in a folder are one item, also if one of them is an input. Files of
    any name are looked at for them. The result has the name of the folder; of several series in it,
    those of the series in that folder: ``scan/3-T1w.nii.gz``. `inputs`: files, and folders; `out`,
    if it lies in one, is left out. `suffix`: of all targets; by default each file's own, or `USUAL`
    or, of a DICOM series, `USUAL_VOLUME` if that format is not written. `references`: folder of
    references, at the places of their files; only their suffixes may differ. That of a series may
    be a folder.

    A result that a journal lists is left out where the file that it was made of is listed too.
    """
    if references is not None and not _is_folder(references):
        raise AppError(f"{references}: there is no such folder.", "Name one with references.")
    if suffix is not None and not suffix.lower().endswith(_WRITABLE):
        raise AppError(
            f"“{suffix}” is no suffix of a format that can be written.",
            f"Use one of {', '.join(dict.fromkeys(_WRITABLE))}.",
        )
    found, listed, seen = FoundFiles(), list[_Listed](), set[str]()
    lister = _Lister(out, found)
    for given in inputs:
        for entry in lister.entries(given):
            if os.path.realpath(entry.path) not in seen:
                listed.append(entry)
                seen.update(map(os.path.realpath, entry.slices or (entry.path,)))
    earlier = _Earlier()
    kept = [each for each in listed if not earlier.of_any(each.whole, seen)]
    found.earlier, listed = len(listed) - len(kept), kept
    if not listed:
        if own := [each for each in inputs if os.path.realpath(each) == os.path.realpath(out)]:
            raise AppError(
                f"“{own[0]}” is the folder for the results, and is left out.",
                "Choose another folder for the results, or name the files in it.",
            )
        names = ", ".join(f"“{each}”" for each in inputs[:3])
        raise AppError(
            f"There is no picture or volume in {names}.", "Name files, or folders with some."
        )
    library = _References(references) if references is not None else None
    for entry, place in zip(listed, _places(listed, suffix), strict=True):
        reference = library.of(entry) if library is not None else None
        target = out / place
        found.items.append(Item(entry.path, target, reference, entry.slices, entry.by_folder))
    return found


@dataclass(frozen=True)
class _Listed:
    """A file or a series, and the name of its result."""

    path: Path  # of a series, its first file
    place: PurePath  # below the input, with its own suffix
    whole: Path  # the same from the root
    stem: str  # the name without the suffix
    usual: str  # the suffix of the result where none was chosen
    slices: tuple[Path, ...] = ()  # the files of a series
    scan: PurePath | None = None  # the place of the folder that a series has for itself
    by_folder: bool = False

    @classmethod
    def of(cls, path: Path, place: PurePath) -> _Listed:
        end = _end(place.name)
        usual = end if end.lower() in _WRITABLE else USUAL
        if end.lower().endswith(".zarr"):  # it may be a picture, which is not written as one
            usual = end[:-5] + USUAL
        return cls(path, place, _absolute(path), place.name[: len(place.name) - len(end)], usual)

    @classmethod
    def of_dicom(cls, path: Path, place: PurePath, slices: tuple[Path, ...] = ()) -> _Listed:
        """Return a DICOM file; whatever else follows a dot in its name is no suffix."""
        ends = (end for end in DICOM.suffixes if place.name.lower().endswith(end))
        stem = place.name[: len(place.name) - len(next(ends, ""))]
        return cls(path, place, _absolute(path), stem, USUAL_VOLUME if slices else USUAL, slices)

    @classmethod
    def of_series(
        cls, path: Path, slices: tuple[Path, ...], folder: Path, below: PurePath, title: str
    ) -> _Listed:
        whole = _absolute(folder / title)
        place = below / title if title else below
        if not place.name:
            place = PurePath(whole.name or _NAMELESS)
        scan = None if title else below
        return cls(path, place, whole, place.name, USUAL_VOLUME, slices, scan, by_folder=True)


class _Lister:
    def __init__(self, out: Path, found: FoundFiles) -> None:
        self._outside, self._found = os.path.realpath(out), found
        self._scans: dict[Path, DicomFiles] = {}

    def entries(self, given: Path) -> Iterator[_Listed]:
        if not _is_folder(given):
            yield self._single(given)
            return
        visited = set[str]()

        def note(error: OSError) -> None:
            path = Path(error.filename or given)
            self._found.problems.append((path, error.strerror or str(error)))

        for folder, below, names in os.walk(given, onerror=note, followlinks=True):
            real = os.path.realpath(folder)
            if real in visited or real == self._outside:  # a link leads back, or to the results
                below.clear()
                continue
            visited.add(real)
            if is_zarr(Path(folder)):  # the files in it are chunks
                below.clear()
                place = Path(folder).relative_to(given)
                yield _Listed.of(Path(folder), place if place.name else PurePath(given.name))
                continue
            below.sort()
            yield from self._of_folder(given, Path(folder), sorted(names))

    def _single(self, path: Path) -> _Listed:
        """Return a file that is an input itself, or the series that it stands for."""
        place = PurePath(path.name)
        alone = dicom_files([path])
        if alone.pictures or alone.damaged or alone.others:
            return _Listed.of_dicom(path, place)
        if not alone.series:
            return _Listed.of(path, place)
        scans = self._of(path.parent)
        for series, files in scans.series.items():
            if path.name in {file.name for file in files}:
                return _Listed.of_dicom(path, place, scans.slices(series))
        return _Listed.of_dicom(path, place, (path,))  # its name is that of a picture

    def _of_folder(self, given: Path, folder: Path, names: Sequence[str]) -> Iterator[_Listed]:
        scans, below = self._of(folder), folder.relative_to(given)
        titles = _titles(list(scans.series))
        first = {files[0]: series for series, files in scans.series.items()}
        slices = {file for series in scans.series for file in scans.slices(series)}
        alone, others = {*scans.pictures, *scans.damaged}, set(scans.others)
        for name in names:
            path = folder / name
            if path in first:
                series = first[path]
                title = titles[series] if len(titles) > 1 else ""
                yield _Listed.of_series(path, scans.slices(series), folder, below, title)
            elif path in slices:
                continue
            elif path in alone:
                yield _Listed.of_dicom(path, below / name)
            elif _is_readable(name) and path not in others:
                yield _Listed.of(path, below / name)
            elif name != JOURNAL:
                self._found.left_out += 1

    def _of(self, folder: Path) -> DicomFiles:
        if folder not in self._scans:
            try:
                # A picture is not looked at here: opening thousands takes its time.
                files = [file for file in folder.iterdir() if _may_be_dicom(file.name)]
            except OSError:  # the walk, or the reader of a file, names the reason
                files = []
            self._scans[folder] = dicom_files(sorted(files))
        return self._scans[folder]


def _titles(series: Sequence[DicomSeries]) -> dict[DicomSeries, str]:
    titles, taken = dict[DicomSeries, str](), set[str]()
    for each in series:
        text = f"{each.number or ''}-{each.description}"
        title = re.sub(r"(?:[^\w.+]|[.]{2})+", "-", text).strip("-.") or _NAMELESS
        titles[each] = _free(PurePath(title), taken).name
    return titles


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):  # a name that no file can have
        return False


def _may_be_dicom(name: str) -> bool:
    if name.startswith("."):
        return False
    return name.lower().endswith(DICOM.suffixes) or not _is_readable(name)


def _is_readable(name: str) -> bool:
    return name.lower().endswith(_READABLE) and not name.startswith(".")


class _Earlier:
    """Results of earlier batches, by the journals in the folders above them."""

    def __init__(self) -> None:
        self._folders, self._sources = set[Path](), dict[Path, str]()

    def of_any(self, path: Path, sources: Set[str]) -> bool:
        """Return whether a path, or a folder above it, is a result of one of these files."""
        for folder in path.parents:
            if folder not in self._folders:
                self._folders.add(folder)
                found = earlier_results(folder).items()
                self._sources |= {folder / name: os.path.realpath(each) for name, each in found}
        return any(self._sources.get(each) in sources for each in (path, *path.parents))


class _References:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[Path, dict[str, Path]] = {}

    def of(self, entry: _Listed) -> Path | None:
        same = self._folder / entry.place
        if same.is_file():
            return same
        found = self._stems(same.parent).get(entry.stem)
        if found is None and entry.scan is not None:
            folder = self._folder / entry.scan
            found = folder if folder.is_dir() and any(map(is_dicom, folder.iterdir())) else None
        return found

    def _stems(self, folder: Path) -> dict[str, Path]:
        if folder not in self._known:
            files = sorted(folder.iterdir(), reverse=True) if folder.is_dir() else []
            self._known[folder] = {
                file.name[: len(file.name) - len(_end(file.name))]: file
                for file in files
                if file.name.lower().endswith(_READABLE)
            }
        return self._known[folder]


def _places(listed: Sequence[_Listed], suffix: str | None) -> list[PurePath]:
    """Return the place of each result below the output folder; no two are the same."""
    places = [each.place.with_name(each.stem + (suffix or each.usual)) for each in listed]
    if len(set(map(_key, places))) == len(places):
        return places
    try:
        common = os.path.commonpath([each.whole.parent for each in listed])
    except ValueError:  # on different drives
        common = ""
    places = []
    for each in listed:
        parts = each.whole.relative_to(common).parts if common else each.whole.parts[1:]
        places.append(PurePath(*parts[:-1], each.stem + (suffix or each.usual)))
    often, taken, result = Counter(map(_key, places)), set[str](), list[PurePath]()
    for place, each in zip(places, listed, strict=True):
        end = suffix or each.usual
        if often[_key(place)] > 1 and not each.place.name.lower().endswith(end.lower()):
            place = place.with_name(each.place.name + end)
        result.append(_free(place, taken))
    return result


def _free(place: PurePath, taken: set[str]) -> PurePath:
    number, free = 1, place
    while _key(free) in taken:  # only their capitals differ
        number += 1
        free = place.with_name(f"{number}-{place.name}")
    taken.add(_key(free))
    return free


def _key(place: PurePath) -> str:
    """Return the name by which systems that ignore case distinguish files."""
    return str(place).casefold()


def _absolute(path: Path) -> Path:
    """Return a path from the root, without ``..``, which would lead out of the output folder."""
    return Path(os.path.normpath(path.absolute()))


def _end(name: str) -> str:
    """Return the suffix of a name: the longest that a format has, such as ``.nii.gz``."""
    ends = [each for each in (*_READABLE, *_WRITABLE) if name.lower().endswith(each)]
    length = max(map(len, ends), default=len(PurePath(name).suffix))
    return name[len(name) - length :]
