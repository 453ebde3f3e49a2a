"""What the window remembers from one start to the next."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from PySide6.QtCore import QByteArray, QSettings

_MOST_RECENT = 10


class Settings:
    """Typed access to a `QSettings`, which keeps everything as text."""

    def __init__(self, store: QSettings | None = None) -> None:
        self._store = store or QSettings("Kernelscope", "Kernelscope")

    def text(self, key: str, default: str = "") -> str:
        return str(self._store.value(key, default))

    def set_text(self, key: str, value: str) -> None:
        self._store.setValue(key, value)

    def blob(self, key: str) -> QByteArray:
        """Return what Qt saved of a widget's state; empty if there is none."""
        value = self._store.value(key)
        return value if isinstance(value, QByteArray) else QByteArray()

    def set_blob(self, key: str, value: QByteArray) -> None:
        self._store.setValue(key, value)

    def texts(self, group: str) -> dict[str, str]:
        """Return all texts in `group` by name."""
        self._store.beginGroup(group)
        texts = {key: str(self._store.value(key, "")) for key in self._store.childKeys()}
        self._store.endGroup()
        return texts

    def set_texts(self, group: str, texts: Mapping[str, str]) -> None:
        for name, text in texts.items():
            self.set_text(f"{group}/{name}", text)

    def folder(self, purpose: str) -> str:
        """Return the folder last used for `purpose` (“open”, “save”)."""
        return self.text(f"folders/{purpose}")

    def set_folder(self, purpose: str, path: Path) -> None:
        self.set_text(f"folders/{purpose}", str(path))

    @property
    def recent_files(self) -> list[Path]:
        """The files opened last, latest first."""
        return [Path(line) for line in self.text("recentFiles").split("\n") if line]

    def add_recent(self, path: Path) -> None:
        path = path.absolute()
        others = [other for other in self.recent_files if other != path]
        self._set_recent([path, *others][:_MOST_RECENT])

    def clear_recent(self) -> None:
        self._set_recent([])

    def _set_recent(self, paths: list[Path]) -> None:
        self.set_text("recentFiles", "\n".join(map(str, paths)))
