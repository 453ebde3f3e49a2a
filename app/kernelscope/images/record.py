"""The record of a file that was filtered: which of its properties were kept, changed and lost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kernelscope.base.text import enumerated


@dataclass(frozen=True)
class Record:
    """Properties of an input beside its samples, as the output has them.

    Decisions and conversions are sentences: "CMYK converted to RGB."
    """

    # Names of properties: "colour profile", "voxel size".
    kept: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    name: str = "The result"  # that of the output file, for notices

    @classmethod
    def of(
        cls, name: str, facts: Iterable[tuple[str, object, object]], changed: Iterable[str]
    ) -> Record:
        """Return a record of properties: whether the input has each, and the output still."""
        kept, lost = list[str](), list[str]()
        for each, there, still in facts:
            if there and each not in lost:
                (kept if still else lost).append(each)
        return cls(tuple(kept), tuple(changed), tuple(lost), name)

    @property
    def losses(self) -> list[str]:
        """The notice of writing, if the output lacks something."""
        if not self.lost:
            return []
        return [f"{self.name} is saved without {enumerated(self.lost)} of the input."]

    @property
    def notices(self) -> list[str]:
        """All but the properties that were kept, for the user to know."""
        return [*self.changed, *self.losses]

    def as_json(self) -> dict[str, list[str]]:
        return {"kept": [*self.kept], "changed": [*self.changed], "lost": [*self.lost]}


def joined(records: Sequence[Record]) -> Record:
    def all_of(field: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(line for each in records for line in getattr(each, field)))

    lost = all_of("lost")
    kept = tuple(each for each in all_of("kept") if each not in lost)
    return Record(kept, all_of("changed"), lost, records[0].name)
