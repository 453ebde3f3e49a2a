"""The notices about a file of a batch, and the record of its properties, as text for JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from kernelscope.images.record import Record


@dataclass(frozen=True)
class ResultReport:
    """All that is to be known about a result."""

    notices: tuple[str, ...] = ()
    """Those that ``apply`` prints: of reading, of each step, of writing."""
    # See `Record`.
    kept: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()

    @classmethod
    def of(cls, notices: Iterable[str], record: Record | None = None) -> ResultReport:
        """Return a report without the notices that pages, volumes or steps have in common."""
        record = record or Record()
        once = tuple(dict.fromkeys([*notices, *record.losses]))
        return cls(once, record.kept, record.changed, record.lost)

    @property
    def record(self) -> Record:
        return Record(self.kept, self.changed, self.lost)

    def as_json(self) -> dict[str, list[str]]:
        return {each.name: [*getattr(self, each.name)] for each in fields(self)}

    @classmethod
    def from_json(cls, content: Any) -> ResultReport:
        """Return the report of `as_json`; an empty one of anything else."""
        if not isinstance(content, Mapping):
            return cls()
        texts = {each.name: content.get(each.name) for each in fields(cls)}
        return cls(**{k: tuple(map(str, v)) for k, v in texts.items() if isinstance(v, list)})


EMPTY = ResultReport()
