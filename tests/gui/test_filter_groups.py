"""The filters under their headings, and the search."""

from __future__ import annotations

import pytest

from kernelscope import filters
from kernelscope.gui.model.filter_groups import VOLUMES, best, by_category, narrowed
from kernelscope.schema.samples import Kind

PICTURES = by_category(Kind.PICTURE)


def found(text: str) -> set[str]:
    return {spec.id for specs in narrowed(PICTURES, text).values() for spec in specs}


def test_nothing_typed_leaves_all() -> None:
    assert narrowed(PICTURES, "  ") == PICTURES
    assert found("") == set(filters.discover())


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("medi", {"median"}),
        ("NLM", {"nlm"}),
        ("despeckle", {"median"}),
        ("edges", {"laplace", "sobel"}),
        ("poisson noise", {"poisson_noise"}),
        ("noise poi", {"poisson_noise"}),
        ("oisson", set()),
        ("blur", {"gaussian", "mean", "weighted_mean", "rotating_mask", "threshold_mean"}),
        ("(", set()),
    ],
)
def test_every_word_begins_a_word_of_name_category_or_synonyms(text: str, ids: set[str]) -> None:
    assert found(text) == ids


def test_headings_without_a_filter_are_left_out() -> None:
    assert list(narrowed(PICTURES, "sobel")) == ["Edges"]
    assert list(narrowed(by_category(Kind.VOLUME), "volumes")) == [VOLUMES]


def test_the_best_match_is_one_of_that_name() -> None:
    assert best(PICTURES, "gauss").id == "gaussian"
    assert best(PICTURES, "gaussian n").id == "gaussian_noise"
    assert best(PICTURES, "mean").id == "mean"
    assert best(PICTURES, "rank").id == "median"
    assert best(PICTURES, "nothing like it") is None


def test_synonyms_are_in_lower_case_and_say_something_new() -> None:
    for kind in Kind:
        for spec in filters.discover(kind).values():
            assert spec.synonyms, spec.id
            assert len(set(spec.synonyms)) == len(spec.synonyms)
            for word in spec.synonyms:
                assert word == word.casefold()
                assert word != spec.name.casefold()
