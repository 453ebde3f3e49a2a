"""Settings that the window keeps between starts: texts in a file of the user's own.

The file is JSON and not `QSettings`: that one reads Python objects from its file, and
runs their code before the program has seen them.

An update of the program keeps them, and so does going back to an earlier version::

    settings.json           with the version that wrote it; keys unknown to this one are kept
    settings-0.json         as version 0 left it, made when another version first writes
    settings-damaged.json   a file that could not be read, for repair by hand
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import logging
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import platformdirs
from PySide6.QtCore import QByteArray

from kernelscope.base import atomic, json_fields
from kernelscope.base.errors import AppError

_logger = logging.getLogger(__name__)

_MOST_RECENT = 10

_MOST_BYTES = 1 << 20  # more than all settings ever take: a larger file is not ours

VERSION = 1
"""Raised when a key changes its name or its meaning; new keys do not need that. Files without a
number count as version 0."""

_VERSION_KEY = "version"


class Settings:
    """Texts by key, in a file that is replaced whole at each change; nothing in it is ever run."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or platformdirs.user_config_path("kernelscope") / "settings.json"
        read = _read(self.path)
        self._texts = read.texts
        self._aside = read.aside
        self._waiting = False

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Write all changes of this block together, at its end."""
        before, self._waiting = dict(self._texts), True
        try:
            yield
        finally:
            self._waiting = False
            if self._texts != before:
                self.flush()

    def flush(self) -> None:
        try:
            atomic.own_folder(self.path.parent)
            if self._aside:
                atomic.replace(self.path.with_stem(self._aside[0]), self._aside[1], private=True)
                self._aside = None
            texts = {_VERSION_KEY: str(VERSION)} | self._texts
            text = json.dumps(texts, indent=1)  # it names the user's files
            atomic.replace(self.path, text.encode(), private=True, durable=False)
        except OSError as error:
            _logger.warning("settings cannot be kept in %s: %s", self.path, error)

    def folder_of(self, kind: str) -> Path:
        """Return the folder for files of a kind, next to the settings; it may not be there yet."""
        return self.path.parent / kind

    def text(self, key: str, default: str = "") -> str:
        return self._texts.get(key, default)

    def set_text(self, key: str, value: str) -> None:
        self.set_texts("", {key: value})

    def blob(self, key: str) -> QByteArray:
        """Return a widget's state, or nothing: a few changed bytes in it can crash Qt."""
        digest, _, text = self.text(key).partition(" ")
        try:
            data = base64.b64decode(text, validate=True)
        except ValueError:
            return QByteArray()
        return QByteArray(data if hashlib.sha256(data).hexdigest() == digest else b"")

    def set_blob(self, key: str, value: QByteArray) -> None:
        data = value.data()
        text = base64.b64encode(data).decode("ascii")
        self.set_text(key, f"{hashlib.sha256(data).hexdigest()} {text}")

    def texts(self, group: str) -> dict[str, str]:
        start = f"{group}/"
        return {
            key.removeprefix(start): text
            for key, text in self._texts.items()
            if key.startswith(start)
        }

    def set_texts(self, group: str, texts: Mapping[str, str]) -> None:
        keyed = {f"{group}/{name}" if group else name: text for name, text in texts.items()}
        if keyed.items() <= self._texts.items():
            return
        self._texts |= keyed
        if not self._waiting:
            self.flush()

    def folder(self, purpose: str) -> str:
        return self.text(f"folders/{purpose}")

    def set_folder(self, purpose: str, path: Path) -> None:
        self.set_text(f"folders/{purpose}", str(path))

    @property
    def recent_files(self) -> list[Path]:
        return [Path(line) for line in self.text("recentFiles").split("\n") if line]

    def add_recent(self, path: Path) -> None:
        path = path.absolute()
        others = [other for other in self.recent_files if other != path]
        self._set_recent([path, *others][:_MOST_RECENT])

    def clear_recent(self) -> None:
        self._set_recent([])

    def _set_recent(self, paths: list[Path]) -> None:
        self.set_text("recentFiles", "\n".join(map(str, paths)))


class _Read(NamedTuple):
    """The texts of a file, and its copy to make before it is replaced: the stem and the bytes."""

    texts: dict[str, str]
    aside: tuple[str, bytes] | None = None


def _read(path: Path) -> _Read:
    try:
        data = atomic.read_own(path, _MOST_BYTES)
    except FileNotFoundError:
        return _Read({})
    except OSError as error:
        _logger.warning("settings will be made again: %s", error)
        return _Read({})
    try:
        content = json_fields.parse(data.decode(errors="replace"), path.name).value
        if not isinstance(content, dict):
            raise AppError(f"{path} holds no settings.")
    except AppError as error:
        _logger.warning("damaged settings will be made again: %s", error)
        return _Read({}, (f"{path.stem}-damaged", data))
    texts = {key: text for key, text in content.items() if isinstance(text, str)}
    number = texts.pop(_VERSION_KEY, "0")
    version = int(number) if re.fullmatch(r"[0-9]{1,6}", number) else 0
    return _Read(texts, None if version == VERSION else (f"{path.stem}-{version}", data))
