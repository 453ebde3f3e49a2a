"""Settings are texts, whatever their file holds."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import QByteArray

from kernelscope.gui.widgets import settings as module
from kernelscope.gui.widgets.settings import Settings
from tests.foreign import FOREIGN, make_foreign, posix


def test_what_is_set_is_there_at_the_next_start(tmp_path: Path) -> None:
    path = tmp_path / "new" / "settings.json"
    first = Settings(path)
    first.set_text("filter", "médian\n“3”")
    first.set_blob("state", QByteArray(b"\0\xff@Variant"))
    first.set_texts("run", {"device": "gpu", "level": "tuned"})
    first.add_recent(tmp_path / "a.png")
    first.add_recent(tmp_path / os.fsdecode(b"b\xff.png"))
    again = Settings(path)
    assert again.text("filter") == "médian\n“3”"
    assert again.blob("state") == QByteArray(b"\0\xff@Variant")
    assert again.texts("run") == {"device": "gpu", "level": "tuned"}
    assert again.recent_files == [tmp_path / os.fsdecode(b"b\xff.png"), tmp_path / "a.png"]
    assert again.text("missing", "default") == "default"
    if sys.platform != "win32":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [other.name for other in path.parent.iterdir()] == ["settings.json"]


@pytest.mark.parametrize(
    "content", [b"", b"[1]", b"{", b"\xff", b'"text"', b"[" * 100_000, b" " * (1 << 20) + b"{}"]
)
def test_a_damaged_file_is_made_again(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(content)
    settings = Settings(path)
    assert settings.text("filter") == ""
    settings.set_text("filter", "mean")
    assert Settings(path).text("filter") == "mean"
    if len(content) <= 1 << 20:  # a larger file was not ours
        assert (tmp_path / "settings-damaged.json").read_bytes() == content


@posix
@pytest.mark.parametrize("how", FOREIGN)
def test_settings_that_others_may_have_written_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    path = tmp_path / "settings.json"
    Settings(path).set_text("filter", "mean")
    make_foreign(path, how, monkeypatch)
    assert Settings(path).text("filter") == ""


@posix
def test_the_folder_of_the_settings_is_private(tmp_path: Path) -> None:
    folder = tmp_path / "kernelscope"
    folder.mkdir()
    folder.chmod(0o777)
    Settings(folder / "settings.json").set_text("filter", "mean")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_only_texts_are_read(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(
        json.dumps({"filter": 3, "recentFiles": ["a"], "run/size": 1e400, "gpu": "0", "x": None})
    )
    settings = Settings(path)
    assert settings.text("filter") == ""
    assert settings.recent_files == []
    assert settings.texts("run") == {}
    assert settings.text("gpu") == "0"


def test_a_folder_that_cannot_be_written_costs_the_settings_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    settings = Settings(tmp_path / "file" / "settings.json")
    settings.set_text("filter", "mean")
    assert settings.text("filter") == "mean"


# Updates, and the way back ---------------------------------------------------------------


def version_of(path: Path) -> str:
    version: str = json.loads(path.read_text())["version"]
    return version


def test_an_update_keeps_every_setting(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    before = json.dumps({"filter": "mean", "gpu": "1", "folders/open": "/a"})
    path.write_text(before)
    settings = Settings(path)
    assert settings.text("filter") == "mean"
    assert path.read_text() == before  # nothing was set yet
    settings.set_text("gpu", "0")
    assert json.loads(path.read_text()) == {
        **{"version": str(module.VERSION), "filter": "mean", "gpu": "0", "folders/open": "/a"}
    }
    assert (tmp_path / "settings-0.json").read_text() == before
    if sys.platform != "win32":
        assert stat.S_IMODE((tmp_path / "settings-0.json").stat().st_mode) == 0o600


def test_an_earlier_program_keeps_the_settings_of_a_later_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "settings.json"
    monkeypatch.setattr(module, "VERSION", 2)
    Settings(path).set_texts("", {"filter": "mean", "invented": "later"})
    later = path.read_text()
    assert version_of(path) == "2"
    monkeypatch.setattr(module, "VERSION", 1)
    earlier = Settings(path)
    earlier.set_text("filter", "median")
    assert version_of(path) == "1"
    assert (tmp_path / "settings-2.json").read_text() == later
    assert Settings(path).text("filter") == "median"
    monkeypatch.setattr(module, "VERSION", 2)
    assert Settings(path).text("invented") == "later"
    assert Settings(path).text("filter") == "median"


@pytest.mark.parametrize("number", ["", "-1", "x", "1e3", "9" * 5000, "\u0663"])
def test_a_version_that_is_no_number_counts_as_none(tmp_path: Path, number: str) -> None:
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({"version": number, "filter": "mean"}))
    settings = Settings(path)
    assert settings.text("filter") == "mean"
    settings.set_text("gpu", "0")
    assert version_of(path) == str(module.VERSION)
    assert (tmp_path / "settings-0.json").exists()


def test_nothing_is_replaced_that_cannot_be_put_aside(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"filter": "mean"')
    (tmp_path / "settings-damaged.json").mkdir()
    settings = Settings(path)
    settings.set_text("filter", "median")
    assert settings.text("filter") == "median"
    assert path.read_text() == '{"filter": "mean"'
