"""Settings are texts, whatever their file holds."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

import platformdirs
import pytest
from hypothesis import given
from hypothesis import settings as how
from hypothesis import strategies as st
from PySide6.QtCore import QByteArray, QSettings

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


# Qt's own file may hold texts, folders, and objects -------------------------------------


@how(deadline=None, max_examples=60)
@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30))
def test_texts_of_earlier_versions_are_taken_over(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = tmp_path_factory.mktemp("earlier") / "Kernelscope.conf"
    store = QSettings(str(path), QSettings.Format.IniFormat)
    store.setValue("filter", text)
    store.setValue("folders/open", "/a b/ü")
    store.setValue("geometry", QByteArray(b"\0\1"))
    store.sync()
    texts = module.read_earlier(path)
    assert texts["folders/open"] == "/a b/ü"
    assert "geometry" not in texts
    if not text.startswith("@"):
        assert texts["filter"] == text


def test_objects_in_the_file_of_earlier_versions_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "Kernelscope.conf"
    path.write_text('[General]\nfilter=@Variant(\\0\\0\\0\\x7f)\nstate="@ByteArray(x)"\ngpu=0\n')
    monkeypatch.setattr(module, "_EARLIER", path)
    monkeypatch.setattr(platformdirs, "user_config_path", lambda name: tmp_path / name)
    settings = Settings()
    assert settings.text("filter") == settings.text("state") == ""
    assert settings.text("gpu") == "0"
