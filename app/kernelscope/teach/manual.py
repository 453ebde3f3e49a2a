"""The manual: pages of Markdown in ``resources/docs``, and the parts that are generated.

The same pages make the site (``.ci/mkdocs.yml``) and are shown by the program. They are plain
Markdown. A comment that stands alone on its line is replaced by generated text if it names an
entry of `GENERATED`, so that adding a filter changes no page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from kernelscope import filters
from kernelscope.base.paths import RESOURCES
from kernelscope.engine.step import ESTIMATE, default_text
from kernelscope.schema.borders import Border
from kernelscope.schema.devices import Device
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.levels import USUAL_LEVELS, Level
from kernelscope.schema.parameters import Parameter
from kernelscope.schema.samples import Kind

FOLDER = RESOURCES / "docs"  # where the pages are

SECTIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "Use": (
            "index",
            "install",
            "tasks",
            "window",
            "command-line",
            "cluster",
            "library",
            "api",
            "filters",
            "gpu-levels",
            "volumes",
            "benchmark",
            "lecture",
            "questions",
            "comparison",
        ),
        "Develop": (
            *("architecture", "glossary"),
            *("add-a-filter", "add-a-dock"),
            *("debugging", "decisions"),
        ),
    }
)
"""Names of the pages, in reading order."""

_MARK = re.compile(r"^<!-- (.+?) -->$", re.MULTILINE)
_PICTURE = re.compile(r"^!\[[^]]*\]\(([^)]+)\)\n*", re.MULTILINE)


def anchor_of(heading: str) -> str:
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower())


def option_of(parameter: Parameter) -> str:
    """Return how a parameter is written on the command line."""
    return "--" + parameter.name.replace("_", "-")


def filter_name(spec: FilterSpec) -> str:
    """Return a filter's id as it is written on a command line."""
    return spec.base_id.replace("_", "-") + " --dimensions 3d" * spec.is_in_3d


def filter_page(spec: FilterSpec) -> str:
    return f"filter-{spec.base_id.replace('_', '-')}"


def level_page(device: str, level_id: str) -> str:
    return f"level-{device}-{level_id}"


def allowed(parameter: Parameter) -> str:
    return parameter.allowed() + (f", or {ESTIMATE}" if parameter.has_estimate else "")


def page(name: str) -> str:
    """Return a page as the program shows it: generated parts filled in, comments left out.

    Pictures that are not installed are left out too; the wheel has none of them.
    """
    text = fill((FOLDER / f"{name}.md").read_text(encoding="utf-8"))
    text = _PICTURE.sub(lambda found: found[0] if (FOLDER / found[1]).exists() else "", text)
    return _MARK.sub("", text)


def title_of(path: Path) -> str:
    with path.open(encoding="utf-8") as lines:
        return next(lines).removeprefix("# ").strip()


def fill(text: str) -> str:
    """Return the Markdown `text` with generated parts in place of the comments that name them."""
    return _MARK.sub(
        lambda found: GENERATED[found[1]]() if found[1] in GENERATED else found[0], text
    )


def table(heading: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    lines = (heading, ["---"] * len(heading), *rows)
    return "\n".join(f"| {' | '.join(_cell(text) for text in line)} |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", r"\|")


def _overview(kind: Kind) -> str:

    def rows() -> Iterator[Sequence[str]]:
        for spec in filters.discover(kind).values():
            gpu = ", ".join(level.id for level in spec.levels(Device.GPU)) or "none"
            yield f"[`{filter_name(spec)}`](#{filter_name(spec)})", spec.summary, gpu

    return table(("filter", "effect", "GPU levels"), rows())


def _details(kind: Kind) -> str:
    return "\n\n".join(_section(spec) for spec in filters.discover(kind).values())


def _section(spec: FilterSpec) -> str:
    parts = [
        f"### {filter_name(spec)}",
        f"**{spec.name}.** {spec.summary} Source: {spec.source}. "
        f"[Formula, example and cost]({filter_page(spec)}.md).",
    ]
    if spec.parameters:
        parts.append(parameter_table(spec))
    cpu, gpu = spec.levels(Device.CPU), spec.levels(Device.GPU)
    facts = [f"CPU levels: {_names(cpu)}.", f"GPU levels: {_names(gpu)}." if gpu else "CPU only."]
    missing = [border for border in Border if border not in spec.borders]
    if missing and spec.kind is Kind.PICTURE:
        facts.append(f"Borders: all but {', '.join(f'`{border}`' for border in missing)}.")
    if spec.in_3d:
        facts.append(f"Of volumes also [in 3-D]({filter_page(spec)}.md#volumes-in-3-d).")
    return "\n\n".join([*parts, " ".join(facts)])


def parameter_table(spec: FilterSpec) -> str:
    heading = ("option", "values", "default", "meaning")
    return table(heading, map(_parameter, spec.parameters))


def _parameter(parameter: Parameter) -> Sequence[str]:
    default = default_text(parameter)
    return (
        f"`{option_of(parameter)}`",
        allowed(parameter),
        f"`{default}`" if default else "none",
        parameter.help,
    )


def _names(levels: tuple[Level, ...]) -> str:
    return ", ".join(f"`{level.id}`" for level in levels)


def _level_pages() -> str:

    def rows() -> Iterator[Sequence[str]]:
        for device in USUAL_LEVELS:
            for level in filters.levels(device).values():
                link = f"[{level.name}]({level_page(device, level.id)}.md)"
                yield device.upper(), link, level.help

    return table(("device", "page", "in short"), rows())


def _borders() -> str:
    return table(("border", "cells outside the image"), ((f"`{b}`", b.help) for b in Border))


GENERATED: Mapping[str, Callable[[], str]] = MappingProxyType(
    {
        "filters of pictures": lambda: _overview(Kind.PICTURE),
        "filters of volumes": lambda: _overview(Kind.VOLUME),
        "parameters of picture filters": lambda: _details(Kind.PICTURE),
        "parameters of volume filters": lambda: _details(Kind.VOLUME),
        "pages of levels": _level_pages,
        "borders": _borders,
    }
)
"""Generated parts by the comment in whose place they stand."""
