"""The user's own versions of kernels: files in the folder of the settings, one a version.

The sources of the program stay as they are. A version belongs to a filter and a level, and has a
name; the first one is called `FIRST`. Every change is written within a second, in one piece, so
that a killed program loses no more than that.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path

from kernelscope.base import atomic, json_fields
from kernelscope.base.errors import AppError

FIRST = "My version"
"""Name of the version that editing starts with."""

MOST_BYTES = 1 << 20
"""Of a source. The largest kernel of the program has a fiftieth of this."""

LONGEST_NAME = 40

_FORMAT = 1
_FIELDS = ("format", "filter", "level", "name", "original", "text")
_NAME = re.compile(r"[\w .,+()–-]+")


@dataclass(frozen=True)
class Edit:
    filter_id: str
    level_id: str
    name: str
    original: str  # digest of the source that the version started from; see `digest`
    text: str


def digest(text: str) -> str:
    """Return a digest by which a later version of the program's source is noticed."""
    return hashlib.sha256(text.encode()).hexdigest()


def checked_name(name: str) -> str:
    """Return the name of a version without spaces around it.

    Raises `AppError`: if it is empty, too long, or has characters other than letters, digits and
    ``.,+()-_``.
    """
    name = name.strip()
    if not name or len(name) > LONGEST_NAME or not _NAME.fullmatch(name):
        raise AppError(
            "This name cannot be used for a version.",
            f"Use 1 to {LONGEST_NAME} letters, digits, spaces and . , + ( ) - _",
        )
    return name


class Edits:
    """The versions in a folder.

    `folder`: made when the first version is written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def names(self, filter_id: str, level_id: str) -> list[str]:
        found = set()
        for path in self.folder.glob(f"{filter_id}-{level_id}-*.json"):
            try:
                found.add(self._read(path, filter_id, level_id).name)
            except AppError:
                continue
        return sorted(found, key=lambda name: (name != FIRST, name.casefold(), name))

    def damaged(self, filter_id: str, level_id: str) -> list[str]:
        reasons = []
        for path in sorted(self.folder.glob(f"{filter_id}-{level_id}-*.json")):
            try:
                self._read(path, filter_id, level_id)
            except AppError as error:
                reasons.append(error.message)
        return reasons

    def read(self, filter_id: str, level_id: str, name: str) -> Edit | None:
        """Return a version; None if there is none of that name.

        Raises `AppError`: if its file is damaged, too large, or belongs to somebody else.
        """
        path = self._path(filter_id, level_id, name)
        if not path.exists():
            return None
        edit = self._read(path, filter_id, level_id)
        if edit.name != name:
            raise AppError(
                f"“{path}” holds the version “{edit.name}”, not “{name}”.", "Remove the file."
            )
        return edit

    def write(self, edit: Edit) -> None:
        """Write a version in place of an earlier one of its name.

        Raises `AppError`: if it is too large, or the folder cannot be written.
        """
        checked_name(edit.name)
        if len(edit.text.encode("utf-8", "replace")) > MOST_BYTES:
            raise AppError(
                f"The source is larger than {MOST_BYTES >> 20} MiB and was not kept.",
                "Shorten it: a kernel takes a few kilobytes.",
            )
        fields = (_FORMAT, edit.filter_id, edit.level_id, edit.name, edit.original, edit.text)
        text = json.dumps(dict(zip(_FIELDS, fields, strict=True)), indent=1)
        path = self._path(edit.filter_id, edit.level_id, edit.name)
        try:
            atomic.own_folder(path.parent)
            atomic.replace(path, text.encode(), private=True, durable=False)
        except OSError as error:
            raise AppError(
                f"Your version of the kernel cannot be kept: {error}.",
                "Copy the source from the editor before closing it.",
            ) from error

    def remove(self, filter_id: str, level_id: str, name: str) -> None:
        """Remove a version, if it is there.

        Raises `AppError`: if the folder cannot be written.
        """
        try:
            self._path(filter_id, level_id, name).unlink(missing_ok=True)
        except OSError as error:
            raise AppError(f"The version “{name}” cannot be removed: {error}.") from error

    def _path(self, filter_id: str, level_id: str, name: str) -> Path:
        # Names differ in more than files on all systems can: a digest stands for them.
        short = digest(name)[:12]
        return self.folder / f"{filter_id}-{level_id}-{short}.json"

    def _read(self, path: Path, filter_id: str, level_id: str) -> Edit:
        try:
            # JSON escapes can make a text six times as long.
            data = atomic.read_own(path, 6 * MOST_BYTES)
        except OSError as error:
            raise AppError(
                f"A version of the kernel cannot be read: {error}.", "Remove the file."
            ) from error
        content = json_fields.parse(data.decode(errors="replace"), path.name)
        content.only(_FIELDS)
        content["format"].whole(_FORMAT, _FORMAT)
        text = content["text"].text()
        if len(text.encode()) > MOST_BYTES:
            content["text"].refuse("the source is too large.")
        return Edit(
            content["filter"].one_of((filter_id,)),
            content["level"].one_of((level_id,)),
            content["name"].from_text(checked_name),
            content["original"].text(),
            text,
        )
