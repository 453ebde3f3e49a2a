"""Recipes on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelscope.base.errors import ImageWriteError, InvalidRecipe
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.step import Step
from kernelscope.files import RECIPE_SUFFIX, SAMPLES, read_recipe, write_recipe

RECIPE = Recipe((Step.create("gaussian-noise"), Step.create("median", {"size": 5})))


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / f"größe{RECIPE_SUFFIX}"
    path.write_text("something longer than the recipe" * 1000)
    write_recipe(RECIPE, path)
    assert read_recipe(path) == RECIPE
    assert path.read_text(encoding="utf-8") == RECIPE.to_json()
    assert list(tmp_path.iterdir()) == [path]


def test_windows_notepad_may_save_it(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"\xef\xbb\xbf" + RECIPE.to_json().replace("\n", "\r\n").encode())
    assert read_recipe(path) == RECIPE


def test_the_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(RECIPE.to_json().replace("median", "medium"))
    with pytest.raises(
        InvalidRecipe, match=r"^a.json: steps\[1\].filter: There is no filter “medium”"
    ):
        read_recipe(path)


@pytest.mark.parametrize(
    "data", [SAMPLES[0].path.read_bytes(), b"", b"\xff\xfe\x00", b" " * (1 << 21)]
)
def test_what_is_no_text(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(data)
    with pytest.raises(InvalidRecipe, match=r"^a.json: this is no recipe\. A recipe is a short"):
        read_recipe(path)


@pytest.mark.parametrize("name", ["nowhere.json", ".", "a\0b"])
def test_what_cannot_be_read(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidRecipe, match="the recipe cannot be read"):
        read_recipe(tmp_path / name)


def test_what_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(ImageWriteError, match="does not exist"):
        write_recipe(RECIPE, tmp_path / "nowhere" / "a.json")
