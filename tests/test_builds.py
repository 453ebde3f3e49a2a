"""The folder for what tests compile."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from tests import builds


def test_a_file_is_made_once_for_each_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(builds._BUILDS, str(tmp_path))
    made: list[Path] = []

    def make(path: Path) -> None:
        made.append(path)
        path.write_text("made")

    first, again, other = (builds.built(make, ".so", key) for key in ("a", "a", "b"))
    assert first == again != other
    assert first.read_text() == "made"
    assert len(made) == 2


def test_a_full_disk_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(builds._BUILDS, str(tmp_path))

    def make(path: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    with pytest.raises(pytest.fail.Exception, match=r"cannot be written.*No space left") as caught:
        builds.built(make, ".so")
    assert "\n" not in str(caught.value)
