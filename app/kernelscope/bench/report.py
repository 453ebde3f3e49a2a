"""A report: a plan, the measured rows, and the machine. They are merged, and kept as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from kernelscope import filters
from kernelscope.base import json_fields, machine
from kernelscope.base.errors import AppError
from kernelscope.base.json_fields import Field
from kernelscope.bench import peers
from kernelscope.bench.output import write_text
from kernelscope.bench.plan import GPU, Plan, shape_from_json
from kernelscope.bench.rows import Row
from kernelscope.engine.backend import Backend
from kernelscope.schema.blocks import check_block
from kernelscope.schema.filter import FilterSpec


@dataclass(frozen=True)
class Report:
    machine: Mapping[str, str]  # see `facts`
    plan: Plan  # measuring it again repeats the run
    rows: tuple[Row, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    """If it was opened: the names of the files with the machine of each (see `Report.measured_on`);
    empty if it was measured here and now."""

    def measured_on(self) -> str:
        devices = dict.fromkeys(row.device for row in self.rows if row.seconds)
        names = [
            self.machine.get(device.upper(), f"an unknown {device.upper()}") for device in devices
        ]
        commit = self.machine.get("Kernelscope", "").rpartition(" ")[2]
        when = self.machine.get("Date", "").rpartition("+")[0] or self.machine.get("Date", "")
        parts = [when, " and ".join(names), commit and f"commit {commit}"]
        return ", ".join(filter(None, parts))

    def origin(self) -> str:
        if not self.files:
            return f"Measured: {self.measured_on()}."
        return "Recorded: " + "; ".join(f"{on} ({name})" for name, on in self.files.items()) + "."


_GROUPS = ("Software", "Measured")  # facts of a GPU that affect times and are not stated elsewhere


def facts(backends: Mapping[str, Backend], with_peers: bool = False) -> dict[str, str]:
    found = machine.facts()
    if GPU in backends and backends[GPU].availability().available:
        found |= machine.gpu_facts() or {"GPU": backends[GPU].availability().summary}
        groups = tuple(backends[GPU].facts())
        count = len({group.title.rpartition(": ")[0] for group in groups} - {""})
        if count > 1:
            found["GPU"] = f"{count} × {found['GPU']}"
        for group in groups:
            which, of_several, title = group.title.rpartition(": ")
            if title in _GROUPS:
                found |= {
                    f"{which}{of_several}{fact.name}": f"{fact.value} {fact.unit}".strip()
                    for fact in group.facts
                }
    if with_peers:
        found["Peers"] = ", ".join(f"{name} {text}" for name, text in peers.versions().items())
    return found


def merge(reports: Sequence[Report]) -> Report:
    """Return one report with the rows of several, such as of a CPU here and a GPU elsewhere.

    Facts in which the machines differ list the value of each; the plan is the first one's.
    """
    names = dict.fromkeys(name for report in reports for name in report.machine)
    said = {
        name: dict.fromkeys(each.machine[name] for each in reports if name in each.machine)
        for name in names
    }
    return Report(
        {name: "; ".join(texts) for name, texts in said.items()},
        reports[0].plan,
        tuple(row for report in reports for row in report.rows),
        {name: text for report in reports for name, text in report.files.items()},
    )


def beside_each_other(first: Report, second: Report) -> Report:
    """Return one report of two machines or two commits, with the machine named in every row.

    Each is named by the first fact that differs: the GPU, the CPU, the commit, or else A and B.
    """
    reports, names = (first, second), ("A", "B")
    for fact in ("GPU", "CPU", "Kernelscope"):
        said = [report.machine.get(fact, "") for report in reports]
        if all(said) and said[0] != said[1]:
            cut = "commit " if fact == "Kernelscope" else ""
            names = (_short_name(said[0], cut), _short_name(said[1], cut))
            break
    rows = tuple(
        replace(row, machine=name)
        for name, report in zip(names, reports, strict=True)
        for row in report.rows
    )
    return replace(merge([first, second]), rows=rows)


def _short_name(said: str, cut: str) -> str:
    """Return ``NVIDIA H100 80GB HBM3`` of that and its memory, or a commit."""
    return said.rpartition(cut)[2] if cut else said.partition(",")[0]


FORMAT = "kernelscope bench"
VERSION = 1
_NEWEST = 1000  # upper limit of version numbers; a larger one is taken for a damaged file


def save(report: Report, path: Path) -> None:
    """Write all measurements, and the plan that repeats them.

    Raises `AppError` if `path` cannot be written.
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

    Raises `AppError` if `path` cannot be read, is no such report, or is of another version; the
    message names the value that is wrong.
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
