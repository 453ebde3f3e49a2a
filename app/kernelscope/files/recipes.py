"""Recipes as files."""

from __future__ import annotations

from pathlib import Path

from kernelscope.base.errors import InvalidRecipe
from kernelscope.engine.recipe import Recipe
from kernelscope.files.write_errors import replace_file

RECIPE_SUFFIX = ".recipe.json"

MOST_BYTES = 1 << 20  # limit in bytes: no recipe is as long, but a picture chosen by mistake may be


def read_recipe(path: str | Path) -> Recipe:
    """Read a recipe from a file, written by `write_recipe` or by hand.

    Raises `InvalidRecipe` if the file is missing or no recipe; the message has the path of the
    value.
    """
    path = Path(path)
    try:
        with path.open("rb") as handle:
            data = handle.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a path with a null character.
        detail = error.strerror if isinstance(error, OSError) else error
        raise InvalidRecipe(f"{path}: the recipe cannot be read ({detail}).") from error
    try:
        text = data.decode("utf-8-sig")  # some editors on Windows write a byte-order mark
    except UnicodeDecodeError:
        text = ""
    if len(data) > MOST_BYTES or not text:
        raise InvalidRecipe(f"{path.name}: this is no recipe.", "A recipe is a short text file.")
    return Recipe.from_json(text, path.name)


def write_recipe(recipe: Recipe, path: str | Path) -> None:
    """Write a recipe; an existing file is replaced in one step, or stays as it was.

    Raises `ImageWriteError` if the place cannot be written to.
    """
    replace_file(Path(path), recipe.to_json().encode())
