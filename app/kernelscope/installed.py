"""How the program was installed, so that hints show a command that works on this installation."""

from __future__ import annotations

import importlib.metadata
import json
import shlex
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

NAME = "kernelscope"


def install_command(extra: str) -> str:
    """Return the command that adds an optional part, such as ``cuda``, to this installation.

    The origin of an installation is recorded as described in the packaging specification
    *Recording the Direct URL Origin of installed distributions* (PEP 610). Without a record it
    came from an index; a program that is not installed runs from a checkout.
    """
    record = _record()
    if record is None:
        return _editable(Path(__file__).parents[2], extra)
    url = record.get("url", "")
    if "dir_info" in record:
        folder = Path(url2pathname(urlsplit(url).path))
        if record["dir_info"].get("editable"):
            return _editable(folder, extra)
        return _pip(f"{folder}[{extra}]")
    if "vcs_info" in record:
        kind, commit = record["vcs_info"]["vcs"], record["vcs_info"]["commit_id"]
        return _pip(f"{NAME}[{extra}] @ {kind}+{url}@{commit}")
    if url:
        return _pip(f"{NAME}[{extra}] @ {url}")
    return _pip(f"{NAME}[{extra}]")


def _record() -> dict[str, Any] | None:
    """Return the record of the installation; None if the program is not installed."""
    try:
        distribution = importlib.metadata.distribution(NAME)
    except importlib.metadata.PackageNotFoundError:
        return None
    text = distribution.read_text("direct_url.json")
    try:
        record = json.loads(text) if text else {}
    except ValueError:
        record = {}
    return record if isinstance(record, dict) else {}


def _editable(folder: Path, extra: str) -> str:
    if folder == Path.cwd():
        folder = Path()
    return _pip(f"{folder}[{extra}]", "-e ")


def _pip(what: str, options: str = "") -> str:
    quoted = f'"{what}"' if sys.platform == "win32" else shlex.quote(what)
    return f"pip install {options}{quoted}"
