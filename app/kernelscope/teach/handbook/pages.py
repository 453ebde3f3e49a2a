"""The generated pages of filters and levels, and the gallery.

That of a filter is made from its `FilterSpec` and the docstring of its module, that of a level from
the plan of a filter that has it.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import inspect
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kernelscope import filters
from kernelscope.backends.cuda.sources import find_kernel, source_files
from kernelscope.base.durations import duration
from kernelscope.bench.recorded import Recorded, RecordedTime, Wanted
from kernelscope.engine.step import Step, default_text
from kernelscope.schema.borders import Border
from kernelscope.schema.devices import Device
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.parameters import Parameter
from kernelscope.schema.samples import Kind
from kernelscope.teach import manual
from kernelscope.teach.handbook.level_pictures import (
    Planned,
    example_of,
    offering,
    planned,
    planned_example,
)
from kernelscope.teach.handbook.pictures import SCHEME, worked_example

_DEVICES: dict[str, str] = {Device.CPU: "CPU", Device.GPU: "GPU"}


def filter_page(spec: FilterSpec, *, computed: bool = True) -> str:
    """Return the page of a filter as Markdown.

    - `computed`: with the arithmetic of the worked example, which may compile the filter.
    """
    about = spec.explanation
    parts = [f"# {spec.name}", spec.summary]
    if about.use:
        parts += ["## When to use it", about.use, f"**When not.** {about.avoid}"]
    if about.formula:
        parts += ["## Formula", _picture("formula", spec, f"Formula of {spec.name}")]
    parts += [_docstring(spec)]
    if about.formula:
        parts += _worked(spec, computed)
    parts += [
        *_parameters(spec),
        "## Levels and cost",
        *_cost(spec),
        *_borders(spec),
        *_in_3d(spec),
    ]
    parts += ["## Source", f"{spec.source}.", _command(spec)]
    return "\n\n".join(filter(None, parts)) + "\n"


def _picture(kind: str, spec: FilterSpec, text: str) -> str:
    return f"![{text}]({SCHEME}:{kind}/{spec.id})"


def _docstring(spec: FilterSpec) -> str:
    """Return the explanation in the module: up to the source, code in Markdown's quotes."""
    module = importlib.import_module(f"kernelscope.filters.{spec.id}")
    _, _, body = inspect.cleandoc(module.__doc__ or "").partition("\n\n")
    body = re.split(r"^Source:", body, maxsplit=1, flags=re.MULTILINE)[0].strip()
    body = body.replace("``", "`")
    return _fenced(body)


def _fenced(text: str) -> str:
    """Return `text` with indented blocks as blocks of code, which every Markdown has."""
    lines: list[str] = []
    for block in text.split("\n\n"):
        if re.match(r"\s{2,}", block.split("\n")[0]) or block.startswith("    "):
            lines += ["```text", *(line[4:] for line in block.split("\n")), "```", ""]
        elif re.search(r"^ {4}", block, re.MULTILINE):
            lines += ["```text", block, "```", ""]
        else:
            lines += [block, ""]
    return "\n".join(lines).strip()


def _worked(spec: FilterSpec, computed: bool) -> Iterator[str]:
    """Yield the worked example and the effect on a sample."""
    yield "## The filter at work"
    yield _picture("mask", spec, f"{spec.name}: a patch, its window and the result")
    if computed:
        worked = worked_example(spec.id)
        if worked.working:
            yield f"The middle: {worked.working}."
        yield f"Settings: {worked.settings}. Computed by the filter's own code."
    yield _picture("effect", spec, f"{spec.name}: a part of a sample before and after")
    yield "A part of a sample before and after."


# Parameters ----------------------------------------------------------------------------


def _parameters(spec: FilterSpec) -> Iterator[str]:
    if not spec.parameters:
        return
    yield "## Parameters"
    for parameter in spec.parameters:
        yield f"### {parameter.label}"
        yield parameter.help
        yield _facts(parameter)
        if parameter.named_values():
            yield _choices(parameter)
        if parameter.preset_names():
            yield f"Presets: {', '.join(parameter.preset_names())}."


def _facts(parameter: Parameter) -> str:
    default = default_text(parameter)
    facts = [f"Option `{manual.option_of(parameter)}`"]
    if not parameter.named_values():
        facts.append(f"values: {manual.allowed(parameter)}")
    facts.append(f"default: `{default}`" if default else "no default")
    if parameter.symbol:
        facts.append(f"symbol: {parameter.symbol}")
    return "; ".join(facts) + "."


def _choices(parameter: Parameter) -> str:
    return "\n".join(
        f"- `{choice.value}`: {choice.label}. {choice.help}".rstrip()
        for choice in parameter.named_values()
    )


# Cost ----------------------------------------------------------------------------------


@functools.cache
def recorded() -> Recorded:
    """Return the times that the project recorded; an installation may have none."""
    return Recorded.read()


def nearest(spec: FilterSpec, device: str) -> dict[str, RecordedTime]:
    step = Step.of_numbers(spec.id)
    sides = (181, 217, 181) if spec.kind is Kind.VOLUME else (4096, 4096)
    return recorded().nearest_of_each(Wanted(step, sides, spec.bench.channels), device)


def _cost(spec: FilterSpec) -> Iterator[str]:
    """Yield the cost of the levels by device, by plan and as measured."""
    unit = "voxel" if spec.kind is Kind.VOLUME else "sample"
    for device, name in _DEVICES.items():
        levels = spec.levels(device)
        if levels:
            yield _levels(spec, device)
            yield _settings(nearest(spec, device))
        if device == Device.GPU and levels:
            yield f"Operations are those of the plan, for each {unit} of the result."
        reasons: dict[str, list[str]] = {}
        for level, reason in spec.gaps(device).items():
            reasons.setdefault(reason, []).append(f"`{level}`")
        if reasons:
            lines = [f"- {', '.join(levels)}: {reason}" for reason, levels in reasons.items()]
            yield f"{name} levels that it does not have:\n\n" + "\n".join(lines)


def _settings(measured: Mapping[str, RecordedTime]) -> str:
    """Return where and with which settings the times of a table were measured."""
    if not measured:
        return "No times of this filter were recorded."
    found = dict.fromkeys(map(_origin, measured.values()))
    return (
        f"Measured without transfers: {'; '.join(found)}. These are the recorded settings nearest "
        "to the defaults; [all results](../bench/README.md) has the whole tables."
    )


def _origin(figure: RecordedTime) -> str:
    return f"{figure.setting} ({figure.machine}, {figure.date})"


def _levels(spec: FilterSpec, device: str) -> str:
    measured = nearest(spec, device)
    several = len({_origin(figure) for figure in measured.values()}) > 1
    sizes = {figure.row.asked for figure in measured.values()}

    def time(figure: RecordedTime) -> str:
        return duration(figure.seconds) if len(sizes) == 1 else figure.by_million

    heading = ["level", *(["operations"] if device == Device.GPU else []), "time"]
    rows = []
    for level in spec.levels(device):
        figure = measured.get(level.id)
        row = [f"[{_DEVICES[device]} {level.name}]({manual.level_page(device, level.id)}.md)"]
        if device == Device.GPU:
            row.append(f"{planned(spec, level).operations:,.0f}")
        row.append(time(figure) if figure is not None else "–")
        if several:
            row.append(_origin(figure) if figure is not None else "–")
        rows.append(row)
    return manual.table([*heading, *(["setting"] if several else [])], iter(rows))


def _borders(spec: FilterSpec) -> Iterator[str]:
    if spec.kind is Kind.VOLUME or len(spec.borders) < 2:
        return
    yield "## Borders"
    yield manual.table(
        ("border", "cells outside the image"),
        ((f"`{border}`", border.help) for border in Border if border in spec.borders),
    )


def _in_3d(spec: FilterSpec) -> Iterator[str]:
    """Yield the section about masks of voxels."""
    cube = spec.in_3d
    if cube is None:
        return
    yield "## Volumes in 3-D"
    yield (
        "A volume is filtered slice by slice, unless the mask is to go through the slices: in the "
        "window by *3-D* under *Mask*, on the command line by `--dimensions 3d`, in Python by "
        "three `axes`."
    )
    yield f"{cube.summary} All borders but `valid` hold along all three axes."
    yield manual.parameter_table(cube)
    yield from _cost(cube)
    yield f"`{command(cube)}`; `{call(cube)}`."


def _command(spec: FilterSpec) -> str:
    return (
        f"[Command line](command-line.md): `{command(spec)}`. [Python](library.md): "
        f"`{call(spec)}`. [All filters](filters.md#{manual.filter_name(spec)})."
    )


# Gallery -------------------------------------------------------------------------------


def gallery(specs: Iterable[FilterSpec]) -> str:
    specs = tuple(specs)
    parts = [
        "# Gallery",
        "Each filter on a part of a sample: before and after, the command and the line of Python.",
    ]
    for category in dict.fromkeys(spec.category for spec in specs):
        parts.append(f"## {category}")
        for spec in specs:
            if spec.category == category:
                parts += [
                    f"### {spec.name}",
                    f"{spec.summary} [Formula, levels and cost]({manual.filter_page(spec)}.md).",
                    _picture("effect", spec, f"{spec.name}: a part of a sample before and after"),
                    f"```sh\n{command(spec)}\n```",
                    f"```python\n{call(spec)}\n```",
                ]
    return "\n\n".join(parts) + "\n"


def command(spec: FilterSpec) -> str:
    name = "nii.gz" if spec.kind is Kind.VOLUME else "png"
    options = [
        word
        for key, value in _shown(spec).items()
        for word in (manual.option_of(spec.parameter(key)), spec.parameter(key).format(value))
    ]
    return shlex.join(
        [
            *("kernelscope", "apply", *manual.filter_name(spec).split()),
            *(f"in.{name}", f"out.{name}", *options),
        ]
    )


def call(spec: FilterSpec) -> str:
    """Return the line of Python that has the effect shown."""
    image = "volume" if spec.kind is Kind.VOLUME else "image"
    values = [
        f"{key}={spec.parameter(key).format(value) if isinstance(value, float) else repr(value)}"
        for key, value in _shown(spec).items()
    ]
    axes = ["axes=(0, 1, 2)"] if spec.is_in_3d else []
    return f"ks.{spec.base_id}({', '.join([image, *values, *axes])})"


def _shown(spec: FilterSpec) -> Mapping[str, Any]:
    """Return the parameters of the effect; of those that are left alone, the first one."""
    set_ones = spec.explanation.before
    first = [each for each in spec.parameters[:1] if not each.is_estimated]
    return set_ones or {each.name: each.default for each in first}


# Levels --------------------------------------------------------------------------------


_MOST_LINES = 90
"""Lines of a difference that a page shows; longer ones are better read in the kernel viewer."""


def level_page(device: str, level_id: str) -> str:
    level = filters.levels(device)[level_id]
    parts = [
        f"# {_DEVICES[device]}: {level.name}",
        level.help,
        f"![{level.name}: blocks, threads and memories]({SCHEME}:level/{device}/{level_id})",
    ]
    if device == Device.GPU:
        parts.append(_numbers(planned_example(level_id)))
    if level.why:
        parts += ["## Why it takes its time", level.why]
    parts += ["## Measured", *_measured(device, level_id)]
    if device == Device.GPU:
        parts += _step_from_before(level_id)
    parts += ["## Filters that have it", _filters(device, level_id)]
    if level.source:
        parts += [
            "## Source",
            f"{level.source} The letters are those of [Start](index.md#sources).",
        ]
    return "\n\n".join(parts) + "\n"


def _numbers(plan: Planned) -> str:
    return (
        f"The numbers are those of the plan for {plan.filter.name.lower()} with its defaults, "
        f"{plan.size}: kernel `{plan.launch.kernel}`, "
        f"{plan.operations:,.0f} operation{'s' * (plan.operations != 1)} and "
        f"{plan.launch.bytes_per_sample:g} bytes of unavoidable traffic for each sample."
    )


def _filters(device: str, level_id: str) -> str:
    found = offering(device, level_id)
    return ", ".join(f"[{spec.name}]({manual.filter_page(spec)}.md)" for spec in found) + "."


def _measured(device: str, level_id: str) -> Iterator[str]:
    rows = []
    for spec in offering(device, level_id):
        figure = nearest(spec, device).get(level_id)
        if figure is not None:
            where = f"{figure.machine}, {figure.date}"
            rows.append((figure.setting, duration(figure.seconds), where))
    if rows:
        yield manual.table(("setting", "time", "machine, date"), iter(rows))
        yield "Without transfers; [all results](../bench/README.md) have the whole tables."
    else:
        yield "No time of this level was recorded."


def _step_from_before(level_id: str) -> Iterator[str]:
    spec, place = example_of(level_id)
    if not place:
        return
    before, after = (planned(spec, level) for level in spec.levels("gpu")[place - 1 : place + 1])
    lines = list(difflib.unified_diff(_kernel(before), _kernel(after), lineterm="", n=2))[2:]
    lines = [line for line in lines if not line.startswith("@@")]
    link = manual.level_page(Device.GPU, before.level.id)
    yield f"## From {before.level.name.lower()} to {after.level.name.lower()}"
    yield f"The kernel of {spec.name.lower()}, against that of [{before.level.name}]({link}.md):"
    shown = lines[:_MOST_LINES]
    yield "\n".join(["```diff", *shown, "```"]) if shown else "The source is the same."
    if len(lines) > _MOST_LINES:
        yield f"{len(lines) - _MOST_LINES} more lines are in the kernel viewer (Ctrl+K)."


def _kernel(plan: Planned) -> list[str]:
    files = source_files(plan.filter.id)
    found = find_kernel(files, plan.launch.kernel, plan.launch.defines)
    if found is None:
        return []
    text = next(file.text for file in files if file.name == found.file)
    return text.split("\n")[found.start : found.stop]
