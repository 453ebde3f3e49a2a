"""The user's own kernels: templates, and versions in the folder of the settings, one a file.

The sources of the program stay as they are. A version belongs to a filter and a level, and has a
name; the first one is called `FIRST`. Every change is written within a second, in one piece, so
that a killed program loses no more than that.
"""

from __future__ import annotations

import hashlib
import json
import pprint
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelscope.base import atomic, json_fields
from kernelscope.base.errors import AppError
from kernelscope.base.paths import RESOURCES
from kernelscope.schema.launch import Launch

FIRST = "My version"  # name of the version that editing starts with

MOST_BYTES = 1 << 20  # of a source. The largest kernel of the program has a fiftieth of this

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
    """Return the name of a version without spaces around it; raises `AppError` if it is unfit."""
    name = name.strip()
    if not name or len(name) > LONGEST_NAME or not _NAME.fullmatch(name):
        raise AppError(
            "This name cannot be used for a version.",
            f"Use 1 to {LONGEST_NAME} letters, digits, spaces and . , + ( ) - _",
        )
    return name


class Edits:
    """The versions in a folder, which is made with the first one."""

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
        """Return a version, or None; `AppError` for a file that is damaged, or not ours."""
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
        """Write a version over an earlier one; `AppError` if it is too large, or cannot be."""
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
        """Remove a version, if it is there; raises `AppError` if the folder cannot be written."""
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


FOLDER = RESOURCES / "templates"

_GLOBAL = re.compile(r"__global__[^;{}()]*(?:\([^()]*\)\s*)?\b(\w+)\s*\(")
"""The name of a kernel, behind ``__launch_bounds__`` where it has some."""


def template_for(level_id: str, launch: Launch, radius: int) -> str:
    """Return a kernel that copies the image, launched as a level is; empty if none can be."""
    path = FOLDER / f"{level_id}.cu"
    if launch.constants or launch.tables or launch.scratch or not path.is_file():
        return ""
    text = path.read_text(encoding="utf-8")
    return text.replace("@KERNEL@", launch.kernel).replace("@SIDE@", str(2 * radius + 1))


def files_for(
    name: str, text: str, filter_id: str, parameters: Mapping[str, Any]
) -> dict[str, str]:
    """Return ``NAME.cu`` and ``test_NAME.py``: a version of a kernel as that of a new filter.

    The test expects the results of `filter_id` on the CPU with `parameters`. Raises `AppError` for
    a name that cannot be an id, or if `text` has no kernel of the filter.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*", name) or name == filter_id:
        raise AppError(
            f"“{name}” cannot be the id of a new filter.",
            "Choose another file name, of small letters, digits and underscores: own_mean.cu",
        )
    kernels = [each for each in _GLOBAL.findall(text) if each.startswith(f"{filter_id}_")]
    if not kernels:
        raise AppError(
            f"The source has no kernel whose name begins with “{filter_id}_”.",
            "Name the kernel as the original does.",
        )
    for each in kernels:
        text = re.sub(rf"\b{each}\b", f"{name}_{each.removeprefix(f'{filter_id}_')}", text)
    case = pprint.pformat(dict(parameters), width=90, sort_dicts=False)
    test = (FOLDER / "test_filter.txt").read_text(encoding="utf-8")
    test = test.replace("@FILTER@", filter_id).replace("@CASE@", case)
    return {f"{name}.cu": text, f"test_{name}.py": test}
