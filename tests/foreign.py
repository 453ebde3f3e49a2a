"""Files that somebody else may have written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

FOREIGN = ("somebody else's", "a link", "a pipe", "a folder", "written by all", "by a group")

posix = pytest.mark.skipif(os.name != "posix", reason="permissions as POSIX has them")


def make_foreign(path: Path, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a file one that somebody else may have written."""
    if how == "somebody else's":
        if os.geteuid() == 0:
            os.chown(path, 54321, -1)
        else:
            monkeypatch.setattr("kernelscope.base.atomic.os.geteuid", lambda: 54321)
    elif how == "a link":
        kept = path.with_name("elsewhere")
        path.rename(kept)
        path.symlink_to(kept)
    elif how == "a pipe":
        path.unlink()
        os.mkfifo(path)
    elif how == "a folder":
        path.unlink()
        path.mkdir()
    else:
        path.chmod(0o622 if how == "written by all" else 0o620)
