"""The entry of the desktop's menu, with icon and file types, as freedesktop.org describes them.

::

    ~/.local/share/  applications/kernelscope.desktop     name, command, types of files
                     icons/hicolor/.../kernelscope.*      icon, as SVG and as PNG
                     mime/packages/kernelscope-mime.xml   NIfTI and NumPy files, unknown otherwise
                     metainfo/kernelscope.metainfo.xml    description for software centres

Files are offered to the program under *Open With*; the program that opens them by default stays.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from kernelscope.base import atomic
from kernelscope.base.errors import AppError
from kernelscope.base.paths import RESOURCES

_ENTRY = Path("applications") / "kernelscope.desktop"

_COPIES = {
    Path("icons") / "hicolor" / "scalable" / "apps" / "kernelscope.svg": "icon.svg",
    Path("icons") / "hicolor" / "256x256" / "apps" / "kernelscope.png": "icon.png",
    Path("mime") / "packages" / "kernelscope-mime.xml": "desktop/kernelscope-mime.xml",
    Path("metainfo") / "kernelscope.metainfo.xml": "desktop/kernelscope.metainfo.xml",
}
"""Files by their places in the user's folder."""

_TOOLS = (("update-desktop-database", "applications"), ("update-mime-database", "mime"))
"""Programs that bring the desktop's caches up to date, with the folders that they take."""


def install() -> Path:
    """Put the program into the desktop's menu, for this user; return the entry.

    Raises `AppError` if the system has no such menu, or the files cannot be written.
    """
    home = _data_home()
    text = (RESOURCES / "desktop" / _ENTRY.name).read_text(encoding="utf-8")
    try:
        for place, source in _COPIES.items():
            _write(home / place, (RESOURCES / source).read_bytes())
        _write(home / _ENTRY, _with_command(text, command()).encode())
    except OSError as error:
        raise AppError(
            f"The menu entry cannot be written: {error}.", "Make the folder writable."
        ) from error
    _refresh(home)
    return home / _ENTRY


def remove() -> list[Path]:
    home = _data_home()
    there = [home / place for place in (_ENTRY, *_COPIES) if (home / place).exists()]
    try:
        for path in there:
            path.unlink()
    except OSError as error:
        raise AppError(
            f"The menu entry cannot be removed: {error}.", "Make the folder writable."
        ) from error
    _refresh(home)
    return there


def command() -> list[str]:
    checkout = Path(__file__).parents[3] / "main.py"
    if checkout.exists():
        return [sys.executable, str(checkout)]
    script = Path(sysconfig.get_path("scripts")) / "kernelscope"
    return [str(script)] if script.exists() else [sys.executable, "-m", "kernelscope"]


def _data_home() -> Path:
    """Return the folder of the user's data, which the XDG Base Directory Specification names."""
    if sys.platform in ("win32", "darwin"):
        raise AppError(
            "Menu entries are made on Linux only.",
            "Choose Kernelscope in the dialog “Open with” of a file.",
        )
    given = os.environ.get("XDG_DATA_HOME", "")
    return Path(given) if Path(given).is_absolute() else Path.home() / ".local" / "share"


def _with_command(entry: str, words: list[str]) -> str:
    """Return an entry that starts `words`, and is hidden once their program is gone."""
    line = " ".join(map(_quoted, words))
    entry = entry.replace("\nExec=kernelscope ", f"\nExec={line} ")
    return entry.replace("\nTryExec=kernelscope\n", f"\nTryExec={_escaped(words[0])}\n")


def _quoted(word: str) -> str:
    """Quote as the Desktop Entry Specification asks: a string inside of a string."""
    if not re.fullmatch(r"[\w./+-]+", word):
        word = '"' + re.sub(r'(["`$\\])', r"\\\1", word) + '"'
    return _escaped(word.replace("%", "%%"))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic.replace(path, data, durable=False)


def _refresh(home: Path) -> None:
    """Bring caches up to date, where the system has them; desktops also find new files alone."""
    for tool, folder in _TOOLS:
        if shutil.which(tool) is not None and (home / folder).is_dir():
            subprocess.run([tool, str(home / folder)], capture_output=True, check=False)
