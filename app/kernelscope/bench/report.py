"""A report: a plan, the measured rows, and the machine; and merging of reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from kernelscope.base import machine
from kernelscope.bench import peers
from kernelscope.bench.plan import GPU, Plan
from kernelscope.bench.rows import Row
from kernelscope.engine.backend import Backend


@dataclass(frozen=True)
class Report:
    """A plan, its results, and the machine."""

    machine: Mapping[str, str]  # see `facts`
    plan: Plan  # measuring it again repeats the run
    rows: tuple[Row, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    """If it was opened: the names of the files with the machine of each (see `Report.measured_on`);
    empty if it was measured here and now."""

    def measured_on(self) -> str:
        """Return ``NVIDIA H100 80GB HBM3, commit 0e04ab6, 2026-11-21 20:25``."""
        devices = dict.fromkeys(row.device for row in self.rows if row.seconds)
        names = [
            self.machine.get(device.upper(), f"an unknown {device.upper()}") for device in devices
        ]
        commit = self.machine.get("Kernelscope", "").rpartition(" ")[2]
        when = self.machine.get("Date", "").rpartition("+")[0] or self.machine.get("Date", "")
        parts = [" and ".join(names), commit and f"commit {commit}", when]
        return ", ".join(filter(None, parts))

    def origin(self) -> str:
        """Return where and when it was measured, in a sentence; of opened files, of each."""
        if not self.files:
            return f"Measured here: {self.measured_on()}." if self.rows else "Measured here."
        return "Opened: " + "; ".join(f"{name} ({text})" for name, text in self.files.items()) + "."


_GROUPS = ("Software", "Measured")  # facts of a GPU that affect times and are not stated elsewhere


def facts(backends: Mapping[str, Backend], with_peers: bool = False) -> dict[str, str]:
    """Return the facts needed to judge a run: commit, date, machine, versions."""
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
