"""Recipes as text: they are read as written, and faulty ones are refused by name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kernelscope import filters
from kernelscope.base.errors import InvalidParameter, InvalidRecipe
from kernelscope.engine.recipe import VERSION, Recipe
from kernelscope.engine.step import ESTIMATE, Step
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import FilterSpec
from tests.pairs import together

SPECS = list(filters.discover().values())

TEXT = """\
{
  "format": "kernelscope recipe",
  "version": 3,
  "steps": [
    {
      "filter": "threshold-mean",
      "parameters": {
        "size": 5,
        "threshold": 12.5
      },
      "border": "wrap",
      "grey": true
    },
    {
      "filter": "mask",
      "parameters": {
        "mask": "0 -1 0; -1 5.5 -1; 0 -1 0",
        "divisor": "one",
        "negative": "clip"
      },
      "border": "reflect",
      "grey": false
    }
  ]
}
"""


def text(*steps: Any, **changes: Any) -> str:
    """Return a recipe as JSON, with some fields changed."""
    return json.dumps({"format": "kernelscope recipe", "version": 2, "steps": steps} | changes)


def refusal(text: str) -> str:
    with pytest.raises(InvalidRecipe) as caught:
        Recipe.from_json(text, "my.json")
    return str(caught.value)


def test_the_text_of_a_recipe() -> None:
    mask = ((0, -1, 0), (-1, 5.5, -1), (0, -1, 0))
    recipe = Recipe(
        (
            Step.create(
                "threshold-mean", {"size": 5, "threshold": 12.5}, border=Border.WRAP, grey=True
            ),
            Step.create("mask", {"mask": mask, "divisor": "one"}),
        )
    )
    assert recipe.to_json() == TEXT
    assert Recipe.from_json(TEXT) == recipe
    assert Recipe.from_json(TEXT).steps[1].parameters["mask"] == mask


@together("spec", SPECS)
def test_every_filter_can_be_kept(spec: FilterSpec) -> None:
    recipe = Recipe((Step.create(spec.id, border=spec.borders[-1]),))
    estimated = {each.name: ESTIMATE for each in spec.parameters if each.is_estimated}
    assert recipe.steps[0].values == spec.defaults() | estimated
    assert Recipe.from_json(recipe.to_json()) == recipe


def test_a_file_keeps_the_defaults_of_its_time() -> None:
    """Version 1 clipped negative results of Laplace by default."""
    laplace = {"filter": "laplace"}
    shown = {"filter": "laplace", "parameters": {"negative": "offset"}}
    for version, negative in ((1, "clip"), (2, "absolute")):
        first, second = Recipe.from_json(text(laplace, shown, version=version)).steps
        assert first == Step.create("laplace", {"negative": negative})
        assert second == Step.create("laplace", {"negative": "offset"})
    assert Step.create("laplace").parameters["negative"] == "absolute"
    (step,) = Recipe.from_json(text({"filter": "mask"}, version=1)).steps
    assert step == Step.create("mask", {"negative": "clip"})


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.id)
def test_former_defaults_are_valid_and_of_earlier_versions(spec: FilterSpec) -> None:
    for parameter in spec.parameters:
        for version, value in parameter.formerly.items():
            assert 1 <= version < VERSION
            assert parameter.validate(value) == value
            assert value != parameter.default or parameter.is_estimated


def test_an_estimate_is_kept_as_the_word() -> None:
    step = Step.create("nlm", {"filter_sigma": ESTIMATE, "patch": 5})
    assert step.estimates == ("sigma", "filter_sigma")
    assert step.parameters["patch"] == 5
    written = Recipe((step,)).to_json()
    assert json.loads(written)["steps"][0]["parameters"]["filter_sigma"] == "estimate"
    assert Recipe.from_json(written).steps == (step,)


def test_only_what_has_an_estimate_is_estimated() -> None:
    assert [p.name for p in filters.get("nlm").parameters if p.has_estimate] == [
        "sigma",
        "patch",
        "filter_sigma",
    ]
    assert [p.name for p in filters.get("mri-nlm").parameters if p.has_estimate] == ["beta"]
    with pytest.raises(InvalidParameter, match="'estimate' is not a number"):
        Step.create("nlm", {"patch_sigma": ESTIMATE})


def test_a_recipe_has_steps() -> None:
    with pytest.raises(InvalidRecipe, match="no steps"):
        Recipe(())


@together(
    ("content", "message"),
    [
        ("", "my.json: this is not JSON: line 1, column 1"),
        ('{"format":\n1,}', "my.json: this is not JSON: line 2"),
        ("[" * 100_000, "my.json: it is nested too deeply."),
        ("9" * 5000, "my.json: Exceeds the limit"),
        ("[]", "my.json: this is no recipe. One starts with"),
        ('{"steps": []}', "my.json: this is no recipe. One starts with"),
        (
            text(version=4),
            "my.json: version: version 4 of recipes is unknown. This program reads versions 1 to 3",
        ),
        (text(version=0), "my.json: version: expected a whole number from 1"),
        (text(version=1.0), "version: expected a whole number from 1 to 1000, found 1.0"),
        (text(version=True), "found true"),
        (text(version="1"), 'found "1"'),
        (text(), "my.json: steps: there are no steps."),
        (text(steps=3), "my.json: steps: expected a list [...], found 3."),
        (text(stops=[]), 'my.json: there is no field "stops". Use format, version, steps.'),
        (
            '{"format": "kernelscope recipe", "version": 1, "steps": [], "steps": []}',
            'my.json: "steps" occurs twice in the same object.',
        ),
    ],
)
def test_what_is_no_recipe(content: str, message: str) -> None:
    assert message in refusal(content)


@together(
    ("step", "message"),
    [
        ("mean", 'expected an object {...}, found "mean"'),
        ({}, "steps[1]: “filter” is missing."),
        ({"filter": 5}, "steps[1].filter: expected text, found 5."),
        ({"filter": "blur"}, "steps[1].filter: There is no filter “blur”. Use one of "),
        ({"filter": "mean", "gray": True}, 'steps[1]: there is no field "gray". Use filter, '),
        ({"filter": "mean", "axis": "t"}, 'steps[1].axis: expected one of z, y, x, found "t".'),
        ({"filter": "mean", "grey": 1}, "steps[1].grey: expected true or false, found 1."),
        (
            {"filter": "mean", "border": "soft"},
            "steps[1].border: Mean has no border “soft”",
        ),
        ({"filter": "mean", "border": None}, "steps[1].border: expected text, found null."),
        (
            {"filter": "gaussian-noise", "border": "wrap"},
            "has no border “wrap”. Use one of reflect",
        ),
        (
            {"filter": "mean", "parameters": [3]},
            "steps[1].parameters: expected an object",
        ),
        ({"filter": "mean", "parameters": {"mask": 3}}, "Mean has no parameter “mask”."),
        (
            {"filter": "mean", "parameters": {"size": 4}},
            "steps[1].parameters.size: Mask size: 4 is even. A mask needs a centre: use 3 or 5.",
        ),
        ({"filter": "mean", "parameters": {"size": "estimate"}}, "is not a whole number"),
        (
            {"filter": "gaussian-noise", "parameters": {"variance": 10**400}},
            "expected a number up to",
        ),
        ({"filter": "gaussian-noise", "parameters": {"variance": float("nan")}}, "not a finite"),
        (
            {"filter": "mask", "parameters": {"mask": [[1]]}},
            "mask: expected text, found a list.",
        ),
        ({"filter": "mask", "parameters": {"mask": "1 2; 3 4"}}, "parameters.mask: "),
    ],
)
def test_a_step_that_cannot_be_is_named(step: Any, message: str) -> None:
    found = refusal(text({"filter": "median"}, step))
    assert found.startswith("my.json: steps[1]")
    assert message in found


def test_values_that_do_not_go_together() -> None:
    """As a file can hold them, but no single field is wrong."""
    zero = {"filter": "mask", "parameters": {"mask": "0 1 0; 0 -1 0; 0 0 0", "divisor": "sum"}}
    assert refusal(text(zero)).startswith("my.json: steps[0]: ")


def test_the_axis_of_slices_is_kept() -> None:
    recipe = Recipe((Step.create("mean", axis=2), Step.create("mean")))
    assert '"axis": "x"' in recipe.to_json()
    assert [step.axis for step in Recipe.from_json(recipe.to_json()).steps] == [2, 0]


def test_a_mask_through_the_slices_is_kept() -> None:
    step = Step.create("median_3d", {"size": (5, 3, 1)}, border=Border.KEEP)
    written = Recipe((step, Step.create("median"))).to_json()
    assert written.count('"dimensions": "3d"') == 1
    assert "3d" not in written.replace('"dimensions": "3d"', "")
    assert Recipe.from_json(written).steps == (step, Step.create("median"))
    flat = Recipe.from_json(text({"filter": "median", "dimensions": "2d"}))
    assert flat.steps == (Step.create("median"),)
    for wrong, message in (
        ({"filter": "nlm", "dimensions": "3d"}, "dimensions: Non-local means has no mask"),
        ({"filter": "mean", "dimensions": "4d"}, "dimensions"),
        ({"filter": "mean", "dimensions": "3d", "border": "valid"}, "no border “valid”"),
    ):
        with pytest.raises(InvalidRecipe, match=message):
            Recipe.from_json(text(wrong))


def test_what_is_estimated_where_nothing_is_set() -> None:
    """Requests keep source N's number, and so do recipes of version 1.

    Its weights and patches are those of version 2, too.
    """
    assert Step.create("nlm").estimates == ("sigma", "patch", "filter_sigma")
    assert Step.create("nlm", {"filter_sigma": 0.02}).estimates == ("sigma", "patch")
    assert filters.get("nlm").defaults()["filter_sigma"] == 0.02
    texts = [
        json.dumps({"format": "kernelscope recipe", "version": v, "steps": [{"filter": "nlm"}]})
        for v in (1, 2)
    ]
    old, new = (Recipe.from_json(text).steps[0].values["filter_sigma"] for text in texts)
    assert (old, new) == (0.02, ESTIMATE)
    for text_ in texts:
        former = Recipe.from_json(text_).steps[0].parameters
        assert (former["weights"], former["patch"]) == ("gaussian", 7)
    latest = Step.create("nlm").values
    assert (latest["weights"], latest["patch"]) == ("corrected", ESTIMATE)
    volumes = {"filter": "mri-nlm"}
    texts = [text(volumes, version=version) for version in (1, 2)]
    old, new = (Recipe.from_json(text).steps[0].values["beta"] for text in texts)
    assert (old, new) == (1.0, ESTIMATE)
    assert filters.get("mri_nlm").defaults()["beta"] == 1.0
