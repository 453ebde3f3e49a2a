"""The page of a level: its drawing, the reason for its time, and the step from the one before."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from kernelscope import filters
from kernelscope.backends.cuda.preprocessor import find_kernel
from kernelscope.backends.cuda.sources import source_files
from kernelscope.base.durations import duration
from kernelscope.schema.devices import Device
from kernelscope.teach import manual
from kernelscope.teach.handbook.filter_pages import nearest
from kernelscope.teach.handbook.level_pictures import (
    Planned,
    example_of,
    offering,
    planned,
    planned_example,
)
from kernelscope.teach.handbook.pictures import SCHEME

_MOST_LINES = 90
"""Lines of a difference that a page shows; longer ones are better read in the kernel viewer."""


def page(device: str, level_id: str) -> str:
    level = filters.levels(device)[level_id]
    name = {Device.CPU: "CPU", Device.GPU: "GPU"}[Device(device)]
    parts = [
        f"# {name}: {level.name}",
        level.help,
        f"![{level.name}: blocks, threads and memories]({SCHEME}:level/{device}/{level_id})",
    ]
    if device == Device.GPU:
        parts.append(_numbers(planned_example(level_id)))
    if level.why:
        parts += ["## Why it takes its time", level.why]
    parts += ["## Measured", *_measured(device, level_id)]
    if device == Device.GPU:
        parts += _step(level_id)
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


def _step(level_id: str) -> Iterator[str]:
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
