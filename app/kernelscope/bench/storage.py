"""Reports as JSON files: all measurements, with everything needed to show and repeat them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

from kernelscope import filters
from kernelscope.base import json_fields
from kernelscope.base.errors import AppError
from kernelscope.base.json_fields import Field
from kernelscope.bench.output import write_text
from kernelscope.bench.plan import Plan, shape_from_json
from kernelscope.bench.report import Report
from kernelscope.bench.rows import Row
from kernelscope.schema.blocks import check_block
from kernelscope.schema.filter import FilterSpec

FORMAT = "kernelscope bench"
VERSION = 1
_NEWEST = 1000  # upper limit of version numbers; a larger one is taken for a damaged file


def save(report: Report, path: Path) -> None:
    """Write all measurements, and the plan that repeats them.

    Raises
    ------
    AppError
        If `path` cannot be written.
    """
    content = {
        "format": FORMAT,
        "version": VERSION,
        "machine": dict(report.machine),
        "plan": report.plan.to_json(),
    }
    # One line for each row keeps the files short enough to be stored with the page.
    rows = ",\n".join(json.dumps(asdict(row)) for row in report.rows)
    head = json.dumps(content, indent=1).removesuffix("\n}")
    write_text(path, f'{head},\n "rows": [\n{rows}\n ]\n}}\n')


def load(path: Path) -> Report:
    """Return the report that `save` wrote.

    Raises
    ------
    AppError
        If `path` cannot be read, is no such report, or is of another version; the message names
        the value that is wrong.
    """
    content = json_fields.read(path)
    if not isinstance(content.value, dict) or content.value.get("format") != FORMAT:
        raise AppError(
            f"{path} is not a report of the bench.", "Use a file that “bench --out” wrote."
        )
    version = content["version"].whole(1, _NEWEST)
    if version != VERSION:
        raise AppError(
            f"{path} has version {version} of the format; this program reads {VERSION}.",
            "Measure again.",
        )
    report = Report(
        content["machine"].typed(Mapping[str, str]),
        Plan.from_json(content["plan"]),
        tuple(map(_row, content["rows"].elements())),
    )
    return replace(report, files={path.name: report.measured_on()})


def _row(content: Field) -> Row:
    """Return a row; fields that older reports lack have their defaults."""
    spec = content["filter"].from_text(filters.get)
    row = content.record(
        Row,
        filter=spec.id,
        parameters=_parameters(content["parameters"], spec),
        shape=shape_from_json(content["shape"], spec.kind),
        asked=shape_from_json(content["asked"], spec.kind),
    )
    for side, whole, place in zip(row.shape, row.asked, content["shape"].elements(), strict=True):
        if side > whole:
            place.refuse(f"{side} was timed of {whole}.")
    if row.block:
        content["block"].through(check_block, row.block)
    for name, times in (("stages", row.stages), ("kernels", row.kernels)):
        for part in times:  # one time for each repeat
            content[name][part].elements(len(row.seconds))
    return row


def _parameters(content: Field, spec: FilterSpec) -> dict[str, str]:
    """Return parameters as texts; those added later have defaults that keep the meaning."""
    found = {each.name: each.format(each.default) for each in spec.parameters}
    for name, value in content.fields():
        if name in found:  # a report of a newer version may have others
            value.from_text(spec.parameter(name).parse)
        found[name] = value.text()
    return found
