"""The files of the user's versions of kernels."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernelscope.base.errors import AppError
from kernelscope.gui.model import kernel_edits
from kernelscope.gui.model.kernel_edits import FIRST, Edit, Edits, checked_name, digest


def edit(name: str = FIRST, text: str = "int ß;\n") -> Edit:
    return Edit("mean", "shared", name, digest("original"), text)


def file_of(edits: Edits) -> Path:
    (path,) = edits.folder.glob("*.json")
    return path


def test_a_version_is_kept(edits: Edits) -> None:
    assert edits.read("mean", "shared", FIRST) is None
    edits.write(edit())
    assert Edits(edits.folder).read("mean", "shared", FIRST) == edit()
    assert edits.read("mean", "global", FIRST) is None
    assert edits.read("median", "shared", FIRST) is None


def test_only_the_user_may_read_it(edits: Edits) -> None:
    edits.write(edit())
    assert file_of(edits).stat().st_mode & 0o077 == 0


def test_several_versions_side_by_side(edits: Edits) -> None:
    for name in ("b", FIRST, "A (2)"):
        edits.write(edit(name, f"// {name}"))
    assert edits.names("mean", "shared") == [FIRST, "A (2)", "b"]
    assert edits.names("mean", "global") == []
    edits.remove("mean", "shared", FIRST)
    edits.remove("mean", "shared", FIRST)
    assert edits.names("mean", "shared") == ["A (2)", "b"]
    found = edits.read("mean", "shared", "b")
    assert found is not None
    assert found.text == "// b"


@pytest.mark.parametrize(
    "name", ["", "   ", "x" * 41, "a/b", "..\\a", "a\nb", "a\0"], ids=lambda name: repr(name)[:9]
)
def test_names_that_are_none(edits: Edits, name: str) -> None:
    with pytest.raises(AppError, match="cannot be used"):
        checked_name(name)
    with pytest.raises(AppError, match="cannot be used"):
        edits.write(edit(name))


def test_spaces_around_a_name_do_not_count() -> None:
    assert checked_name("  rows of 4 ") == "rows of 4"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("format", 2),
        ("filter", "median"),
        ("level", "global"),
        ("name", "a/b"),
        ("original", 3),
        ("text", ["int x;"]),
        ("more", 1),
    ],
)
def test_a_damaged_file_is_refused_and_named(edits: Edits, field: str, value: object) -> None:
    edits.write(edit())
    path = file_of(edits)
    path.write_text(json.dumps(json.loads(path.read_text()) | {field: value}))
    with pytest.raises(AppError, match=path.name):
        edits.read("mean", "shared", FIRST)
    assert edits.names("mean", "shared") == []
    (reason,) = edits.damaged("mean", "shared")
    assert path.name in reason


def test_a_file_under_the_name_of_another_version_is_refused(edits: Edits) -> None:
    edits.write(edit("one"))
    path = file_of(edits)
    path.write_text(path.read_text().replace('"one"', '"two"'))
    with pytest.raises(AppError, match="holds the version “two”"):
        edits.read("mean", "shared", "one")


def test_sources_are_bounded(edits: Edits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_edits, "MOST_BYTES", 100)
    with pytest.raises(AppError, match="was not kept"):
        edits.write(edit(text="ß" * 51))
    edits.write(edit(text="ß" * 50))
    monkeypatch.setattr(kernel_edits, "MOST_BYTES", 90)
    with pytest.raises(AppError, match="too large"):
        edits.read("mean", "shared", FIRST)
    monkeypatch.setattr(kernel_edits, "MOST_BYTES", 20)
    with pytest.raises(AppError, match="cannot be read"):
        edits.read("mean", "shared", FIRST)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "kernels").write_text("a file")
    with pytest.raises(AppError, match="cannot be kept"):
        Edits(tmp_path / "kernels").write(edit())
