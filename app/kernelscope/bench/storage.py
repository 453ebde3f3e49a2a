"""Reports as JSON files: all measurements, with everything needed to show and repeat them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TypeVar

from kernelscope import filters
from kernelscope.base import json_fields
from kernelscope.base.errors import AppError
from kernelscope.base.json_fields import Field
from kernelscope.bench.data import Content
from kernelscope.bench.output import write_text
from kernelscope.bench.plan import DEVICES, MEASURABLE, MOST_GPUS, Plan, shape_from_json
from kernelscope.bench.report import Report
from kernelscope.bench.rows import Difference, Row
from kernelscope.schema.blocks import MOST_THREADS, Block, check_block
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.samples import Kind

Value = TypeVar("Value")

FORMAT = "kernelscope bench"
VERSION = 1


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
        _texts(content["machine"]),
        Plan.from_json(content["plan"]),
        tuple(map(_row_from_json, content["rows"].elements())),
    )
    return replace(report, files={path.name: report.measured_on()})


_NEWEST = 1000  # upper limit of version numbers; a larger one is taken for a damaged file


def _texts(content: Field) -> dict[str, str]:
    return {name: value.text() for name, value in content.fields()}


def _row_from_json(content: Field) -> Row:
    """Return a row; fields that older reports lack have their defaults."""
    spec = content["filter"].from_text(filters.get)
    axes = 3 if spec.kind is Kind.VOLUME else 2
    shape = shape_from_json(content["shape"], axes)
    asked = shape_from_json(content["asked"], axes)
    for side, whole, place in zip(shape, asked, content["shape"].elements(), strict=True):
        if side > whole:
            place.refuse(f"{side} was timed of {whole}.")
    seconds = tuple(each.number(*MEASURABLE) for each in content["seconds"].elements())
    return Row(
        label=content["label"].text(),
        filter=spec.id,
        parameters=_parameters(content["parameters"], spec),
        border=content["border"].one_of([str(border) for border in Border]),
        content=content["content"].one_of([str(each) for each in Content]),
        channels=content["channels"].whole(1, 4),
        asked=asked,
        shape=shape,
        device=content["device"].one_of(DEVICES),
        level=content["level"].text(),
        library=content["library"].flag(),
        gpus=content["gpus"].whole(1, MOST_GPUS) if "gpus" in content else 1,
        block=_or_none(content, "block", _block) if "block" in content else None,
        seconds=seconds,
        stages=_times(content["stages"], len(seconds)),
        kernels=_times(content["kernels"], len(seconds)) if "kernels" in content else {},
        bytes=_or_none(content, "bytes", _amount),
        operations=_or_none(content, "operations", _amount),
        copy_rate=_or_none(content, "copy_rate", _rate),
        peak_rate=_or_none(content, "peak_rate", _rate),
        batch=content["batch"].whole(1, _MOST_LAUNCHES) if "batch" in content else 1,
        cache=content["cache"].text(),
        load=_or_none(content, "load", _amount),
        psnr=_or_none(content, "psnr", lambda each: each.number(-math.inf, math.inf)),
        difference=_or_none(content, "difference", _difference),
        notices=tuple(each.text() for each in content["notices"].elements()),
        reason=content["reason"].text(),
        machine=content["machine"].text() if "machine" in content else "",
    )


_MOST_LAUNCHES = 1 << 40
_MOST = 1e30  # upper limit of bytes, operations and their rates; more is taken for a damaged file


def _parameters(content: Field, spec: FilterSpec) -> dict[str, str]:
    """Return parameters as texts; those added later have defaults that keep the meaning."""
    found = {each.name: each.format(each.default) for each in spec.parameters}
    for name, value in content.fields():
        if name in found:  # a report of a newer version may have others
            value.from_text(spec.parameter(name).parse)
        found[name] = value.text()
    return found


def _times(content: Field, count: int) -> dict[str, tuple[float, ...]]:
    """Return times by name, with one value for each repeat."""
    return {
        name: tuple(each.number(0, MEASURABLE[1]) for each in times.elements(count))
        for name, times in content.fields()
    }


def _or_none(content: Field, name: str, read: Callable[[Field], Value]) -> Value | None:
    field = content[name]
    return None if field.value is None else read(field)


def _amount(content: Field) -> float:
    return content.number(0, _MOST)


def _rate(content: Field) -> float:
    return content.number(1, _MOST)


def _block(content: Field) -> Block:
    width, height = (each.whole(1, MOST_THREADS) for each in content.elements(2))
    return content.through(check_block, (width, height))


def _difference(content: Field) -> Difference:
    return Difference(
        content["largest"].number(0, math.inf),
        content["share"].number(0, 1),
        content["inside"].flag(),
    )
