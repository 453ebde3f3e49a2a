"""Recipes as text: what is written is read back, and what cannot be is refused by name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app import filters
from app.engine.recipe import ESTIMATE, VERSION, Recipe, Step, has_estimate, is_estimated
from app.errors import InvalidParameter, InvalidRecipe
from app.filters.spec import Border, FilterSpec

SPECS = list(filters.discover().values())

TEXT = """\
{
  "format": "kernelscope recipe",
  "version": 2,
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


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.id)
def test_every_filter_can_be_kept(spec: FilterSpec) -> None:
    recipe = Recipe((Step.create(spec.id, border=spec.borders[-1]),))
    estimated = {each.name: ESTIMATE for each in spec.parameters if is_estimated(each)}
    assert dict(recipe.steps[0].parameters) == spec.defaults() | estimated
    assert Recipe.from_json(recipe.to_json()) == recipe


def test_what_is_left_out_has_its_default() -> None:
    (step,) = Recipe.from_json(text({"filter": "median"})).steps
    assert step == Step.create("median", {"size": 3}, border=Border.REFLECT)


def test_a_file_keeps_the_defaults_of_its_time() -> None:
    """Version 1 clipped what Laplace leaves below zero, where nothing else was written."""
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
            assert value != parameter.default or is_estimated(parameter)


def test_an_estimate_is_kept_as_the_word() -> None:
    step = Step.create("nlm", {"filter_sigma": ESTIMATE, "patch": 5})
    assert step.estimates == ("filter_sigma",)
    assert step.parameters["patch"] == 5
    written = Recipe((step,)).to_json()
    assert json.loads(written)["steps"][0]["parameters"]["filter_sigma"] == "estimate"
    assert Recipe.from_json(written).steps == (step,)


def test_only_what_has_an_estimate_is_estimated() -> None:
    assert [p.name for p in filters.get("nlm").parameters if has_estimate(p)] == ["filter_sigma"]
    with pytest.raises(InvalidParameter, match="'estimate' is not a number"):
        Step.create("nlm", {"patch_sigma": ESTIMATE})


def test_a_step_does_not_change() -> None:
    parameters = {"size": 5}
    step = Step.create("mean", parameters)
    parameters["size"] = 7
    assert step.parameters["size"] == 5
    with pytest.raises(TypeError):
        step.parameters["size"] = 7  # type: ignore[index]


def test_a_recipe_has_steps() -> None:
    with pytest.raises(InvalidRecipe, match="no steps"):
        Recipe(())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "my.json: this is no JSON: line 1, column 1"),
        ('{"format":\n1,}', "my.json: this is no JSON: line 2"),
        ("[" * 100_000, "my.json: this is no recipe"),
        ("9" * 5000, "my.json: this is no recipe"),
        ("[]", "my.json: this is no recipe. One starts with"),
        ('{"steps": []}', "my.json: this is no recipe. One starts with"),
        (
            text(version=3),
            "my.json: version 3 of recipes is unknown. This program reads versions 1 to 2; a newer",
        ),
        (text(version=0), "version 0 of recipes"),
        (text(version=1.0), "version 1.0 of recipes"),
        (text(version=True), "version true of recipes"),
        (text(version="1"), 'version "1" of recipes'),
        (text(), "my.json: there are no steps."),
        (text(steps=3), "my.json: “steps” is no list"),
        (text(stops=[]), "my.json: there is no field “stops”. Use format, version and steps."),
        (
            '{"format": "kernelscope recipe", "version": 1, "steps": [], "steps": []}',
            "my.json: this is no recipe (“steps” stands twice in the same braces).",
        ),
    ],
)
def test_what_is_no_recipe(content: str, message: str) -> None:
    assert message in refusal(content)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("mean", 'step 2: "mean" is no object'),
        ({}, "step 2: “filter” is missing or no text."),
        ({"filter": 5}, "step 2: “filter” is missing or no text."),
        ({"filter": "blur"}, "step 2, “filter”: There is no filter “blur”. Use one of "),
        ({"filter": "mean", "gray": True}, "step 2: there is no field “gray”. Use filter, "),
        ({"filter": "mean", "axis": "t"}, 'step 2 (mean), “axis”: "t" is none of z, y and x.'),
        ({"filter": "mean", "axis": 1}, "step 2 (mean), “axis”: 1 is none of z, y and x."),
        ({"filter": "mean", "grey": 1}, "step 2 (mean), “grey”: 1 is neither true nor false."),
        (
            {"filter": "mean", "border": "soft"},
            "step 2 (mean), “border”: Mean has no border “soft”",
        ),
        ({"filter": "mean", "border": None}, "step 2 (mean), “border”: Mean has no border “None”"),
        ({"filter": "mean", "border": ["wrap"]}, "step 2 (mean), “border”: "),
        (
            {"filter": "gaussian-noise", "border": "wrap"},
            "has no border “wrap”. Use one of reflect",
        ),
        ({"filter": "mean", "parameters": [3]}, "step 2 (mean), “parameters”: [3] is no object"),
        ({"filter": "mean", "parameters": {"mask": 3}}, "Mean has no parameter “mask”."),
        (
            {"filter": "mean", "parameters": {"size": 4}},
            "step 2 (mean), “size”: Mask size: 4 is even. A mask needs a centre: use 3 or 5.",
        ),
        ({"filter": "mean", "parameters": {"size": "3"}}, "'3' is not a whole number"),
        ({"filter": "mean", "parameters": {"size": 3.0}}, "3.0 is not a whole number"),
        ({"filter": "mean", "parameters": {"size": True}}, "True is not a whole number"),
        ({"filter": "mean", "parameters": {"size": "estimate"}}, "is not a whole number"),
        (
            {"filter": "gaussian-noise", "parameters": {"variance": 2}},
            "step 2 (gaussian-noise), “variance”: Variance: 2 is out of range. Use 0 to 1.",
        ),
        ({"filter": "gaussian-noise", "parameters": {"variance": 10**400}}, "number is too large"),
        ({"filter": "gaussian-noise", "parameters": {"variance": float("nan")}}, "not a finite"),
        ({"filter": "sobel", "parameters": {"form": "max"}}, "step 2 (sobel), “form”: "),
        ({"filter": "mask", "parameters": {"mask": [[1]]}}, "“mask”: [[1]] is no mask. Write rows"),
        ({"filter": "mask", "parameters": {"mask": "1 2; 3 4"}}, "“mask”: "),
    ],
)
def test_a_step_that_cannot_be_is_named(step: Any, message: str) -> None:
    found = refusal(text({"filter": "median"}, step))
    assert found.startswith("my.json: step 2")
    assert message in found


def test_values_that_do_not_go_together() -> None:
    """As a file can hold them, but no single field is wrong."""
    zero = {"filter": "mask", "parameters": {"mask": "0 1 0; 0 -1 0; 0 0 0", "divisor": "sum"}}
    assert refusal(text(zero)).startswith("my.json: step 1 (mask): ")


def test_the_axis_of_slices_is_kept() -> None:
    recipe = Recipe((Step.create("mean", axis=2), Step.create("mean")))
    assert '"axis": "x"' in recipe.to_json()
    assert [step.axis for step in Recipe.from_json(recipe.to_json()).steps] == [2, 0]


def test_what_is_estimated_where_nothing_is_set() -> None:
    """Requests keep source N's number, and so do recipes of version 1."""
    assert Step.create("nlm").estimates == ("filter_sigma",)
    assert Step.create("nlm", {"filter_sigma": 0.02}).estimates == ()
    assert filters.get("nlm").defaults()["filter_sigma"] == 0.02
    texts = [
        json.dumps({"format": "kernelscope recipe", "version": v, "steps": [{"filter": "nlm"}]})
        for v in (1, 2)
    ]
    old, new = (Recipe.from_json(text).steps[0].parameters["filter_sigma"] for text in texts)
    assert (old, new) == (0.02, ESTIMATE)
