"""The filters under their headings, and the search for one by any of its names."""

from __future__ import annotations

import re

from kernelscope import filters
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.samples import Kind

VOLUMES = "Volumes"  # the heading of filters that work on volumes as such

Groups = dict[str, list[FilterSpec]]  # filters by heading, in the order in which they are shown


def by_category(kind: Kind) -> Groups:
    """Return the filters for pictures or for volumes under headings.

    Those that filter volumes as such come first; those of pictures follow under their
    categories, all in alphabetical order, because they filter volumes too, slice by slice.
    """
    specs = filters.discover().values()
    of_pictures = {
        category: [spec for spec in specs if spec.category == category]
        for category in sorted({spec.category for spec in specs})
    }
    if kind is Kind.PICTURE:
        return of_pictures
    return {VOLUMES: list(filters.discover(kind).values()), **of_pictures}


def narrowed(groups: Groups, wanted: str) -> Groups:
    """Return the filters whose names, category or synonyms have words that begin as `wanted`."""
    words = wanted.casefold().split()
    found = {
        heading: [spec for spec in specs if _has_all(f"{heading} {_names(spec)}", words)]
        for heading, specs in groups.items()
    }
    return {heading: specs for heading, specs in found.items() if specs}


def best(groups: Groups, wanted: str) -> FilterSpec | None:
    specs = [spec for found in narrowed(groups, wanted).values() for spec in found]
    words = wanted.casefold().split()
    named = [spec for spec in specs if _has_all(f"{spec.name} {spec.short}".casefold(), words)]
    return min(named or specs[:1], key=lambda spec: len(spec.name), default=None)


def _names(spec: FilterSpec) -> str:
    return " ".join((spec.name, spec.short, spec.id, spec.category, *spec.synonyms))


def _has_all(text: str, words: list[str]) -> bool:
    folded = text.casefold()
    return all(re.search(rf"(?<!\w){re.escape(word)}", folded) for word in words)
