"""Recipes on arrays: the bytes of the command line, errors by step, pickles."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from numpy.typing import NDArray

import kernelscope as ks
from kernelscope.cli.main import main

STEPS: list[dict[str, Any]] = [
    {"filter": "gaussian-noise", "parameters": {"sigma": 0.1, "seed": 3}},
    {"filter": "median", "parameters": {"size": 5}, "border": "mirror", "grey": True},
    {"filter": "mean", "within": "ellipse 2,2 20,15"},
]


def text(*steps: dict[str, Any]) -> str:
    return json.dumps({"format": "kernelscope recipe", "version": 2, "steps": list(steps)})


def photo(dtype: Any = np.uint8) -> NDArray[Any]:
    return (np.random.default_rng(1).random((20, 30, 3)) * 200).astype(dtype)


def head() -> NDArray[np.float32]:
    return np.random.default_rng(2).normal(100, 20, (6, 9, 10)).astype(np.float32)


def test_bytes_of_the_command_line(here: Path) -> None:
    Path("r.recipe.json").write_text(text(*STEPS), encoding="utf-8")
    tifffile.imwrite("in.tif", photo(np.uint16), photometric="rgb")
    assert main(["apply", "--recipe", "r.recipe.json", "in.tif", "out.tif", "--quiet"]) == 0
    recipe = ks.Recipe.load(here / "r.recipe.json")
    made = recipe(photo(np.uint16))
    np.testing.assert_array_equal(made, tifffile.imread("out.tif"), strict=True)
    np.testing.assert_array_equal(recipe.apply(photo(np.uint16)), made)


def test_steps_are_functions_one_by_one() -> None:
    recipe = ks.Recipe.from_json(text(*STEPS))
    noisy = ks.gaussian_noise(photo(), sigma=0.1, seed=3)
    smooth = ks.median(noisy, size=5, border="mirror", grey=True)
    expected = ks.mean(smooth, within="ellipse 2,2 20,15")
    np.testing.assert_array_equal(recipe(photo()), expected)
    assert repr(recipe) == "<Recipe: gaussian_noise, median, mean>"
    assert [step.filter.id for step in recipe.steps] == ["gaussian_noise", "median", "mean"]


def test_volumes(here: Path) -> None:
    np.save("in.npy", head())
    slices = {"filter": "median", "axis": "x"}
    both = text({"filter": "mri-nlm", "parameters": {"search_radius": 1}}, slices)
    Path("both.recipe.json").write_text(both, encoding="utf-8")
    assert main(["apply", "--recipe", "both.recipe.json", "in.npy", "out.npy", "--quiet"]) == 0
    made = ks.Recipe.from_json(both)(head())
    np.testing.assert_array_equal(made, np.load("out.npy"), strict=True)

    alone = ks.Recipe.from_json(text(slices))
    np.testing.assert_array_equal(alone(head(), volume=True), ks.median(head(), axis="x"))
    with pytest.raises(ks.InvalidImage, match="not a picture"):
        alone(head())
    pair = alone(head(), components=[head() * 2])
    np.testing.assert_array_equal(pair[1], ks.median(head() * 2, axis="x"))


def test_save_and_load(here: Path) -> None:
    recipe = ks.Recipe.from_json(text(*STEPS))
    recipe.save("saved.recipe.json")
    assert ks.Recipe.load("saved.recipe.json") == recipe
    assert ks.Recipe.load("saved.recipe.json").to_json() == recipe.to_json()
    assert ks.Recipe.from_json(text(STEPS[0])) != recipe


def test_pickles() -> None:
    recipe = ks.Recipe.from_json(text(*STEPS))
    again = pickle.loads(pickle.dumps(recipe))
    np.testing.assert_array_equal(again(photo()), recipe(photo()))


def test_progress_and_cancel() -> None:
    seen: list[tuple[str, float]] = []
    recipe = ks.Recipe.from_json(text(*STEPS))
    recipe(photo(), progress=lambda *each: seen.append(each))
    fractions = [fraction for _, fraction in seen]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1
    assert {stage.split(",")[0] for stage, _ in seen} == {f"step {n} of 3" for n in (1, 2, 3)}

    with pytest.raises(ks.Cancelled):
        recipe(photo(), cancel=lambda: len(seen) > 0)


def test_errors(here: Path) -> None:
    with pytest.raises(ks.InvalidRecipe, match=r"nothing\.json: the recipe cannot be read"):
        ks.Recipe.load("nothing.json")
    with pytest.raises(ks.InvalidRecipe, match=r"steps\[0\]\.parameters\.size"):
        ks.Recipe.from_json(text({"filter": "median", "parameters": {"size": 4}}))
    recipe = ks.Recipe.from_json(text(STEPS[0], {"filter": "mean", "border": "valid"}))
    with pytest.raises(ks.AppError, match=r"Recipe\(\): Step 2, Mean: The 3×3 neighbourhood"):
        recipe(photo()[:, :2])
    with pytest.raises(ks.InvalidParameter, match=r"Recipe\(\): device: there is no “tpu”"):
        recipe(photo(), device="tpu")  # type: ignore[arg-type]
    with pytest.raises(ks.InvalidParameter, match=r"components: this is one volume"):
        recipe(head(), components=head())  # type: ignore[arg-type]
