"""The handbook: the written pages of the manual, a gallery, and a page for each filter and level.

The gallery and the pages of filters and levels are generated: adding a filter changes no page::

    handbook.SECTIONS           names of all pages, by section, in reading order
    handbook.page("median")     a page as Markdown; pictures have addresses, see `pictures`
    handbook.title("median")

The program shows them in a window and the site has them too.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from types import MappingProxyType

from kernelscope import filters
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.levels import USUAL_LEVELS
from kernelscope.schema.samples import Kind
from kernelscope.teach import manual
from kernelscope.teach.handbook import pages

FILTERS: Mapping[str, FilterSpec] = MappingProxyType(
    {manual.filter_page(spec): spec for kind in Kind for spec in filters.discover(kind).values()}
)
"""Filters by the name of their page."""

LEVELS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        manual.level_page(device, level_id): (device, level_id)
        for device in USUAL_LEVELS
        for level_id in filters.levels(device)
    }
)
"""Device and level by the name of their page."""

GALLERY = "gallery"

SECTIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "Use": manual.SECTIONS["Use"],
        "Filters": (GALLERY, *FILTERS),
        "Levels": tuple(LEVELS),
        "Develop": manual.SECTIONS["Develop"],
    }
)
"""Names of all pages, in reading order."""

GENERATED = (GALLERY, *FILTERS, *LEVELS)  # names of the pages that no file holds


@functools.lru_cache(maxsize=256)
def page(name: str, *, computed: bool = True) -> str:
    """Return a page as Markdown.

    - `computed`: with numbers for which a filter has to run, and may have to be compiled.

    Raises `OSError` if there is no such page.
    """
    if name == GALLERY:
        return pages.gallery(FILTERS.values())
    if name in FILTERS:
        return pages.filter_page(FILTERS[name], computed=computed)
    if name in LEVELS:
        return pages.level_page(*LEVELS[name])
    return manual.page(name)


def title(name: str) -> str:
    if name == GALLERY:
        return "Gallery"
    if name in FILTERS:
        return FILTERS[name].name
    if name in LEVELS:
        device, level_id = LEVELS[name]
        return f"{device.upper()}: {filters.levels(device)[level_id].name}"
    return manual.title_of(manual.FOLDER / f"{name}.md")


@functools.lru_cache(maxsize=256)
def anchors(name: str) -> tuple[str, ...]:
    outside = re.sub(r"```.*?```", "", page(name, computed=False), flags=re.DOTALL)
    return tuple(manual.anchor_of(text) for text in re.findall(r"^#+ (.*)$", outside, re.MULTILINE))
