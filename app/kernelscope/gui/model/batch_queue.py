"""The queue of File > Batch: its files, the outcome of each, progress and the time left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelscope.base.durations import about, duration
from kernelscope.base.text import without_name
from kernelscope.big.batch import FileOutcome, FileState, Item

Event = tuple[Item, FileState] | FileOutcome
"""A stage that begins, or the outcome of a file."""

_FEWEST = 2
"""Files after which the time left is estimated: the first also waits for compiling."""


ENDED = frozenset((FileState.DONE, FileState.SKIPPED, FileState.FAILED))


@dataclass(eq=False)
class FileRow:
    item: Item
    state: FileState = FileState.WAITING
    outcome: FileOutcome | None = None  # once it is there

    @property
    def state_name(self) -> str:
        return "done before" if self.state is FileState.SKIPPED else self.state.value

    @property
    def size(self) -> str:
        return self.outcome.size if self.outcome is not None else ""

    @property
    def seconds(self) -> float | None:
        if self.outcome is None or self.state is not FileState.DONE:
            return None
        return self.outcome.read + self.outcome.filtered + self.outcome.written

    @property
    def remark(self) -> str:
        """The reason of a failure, or the time, the device and the notices; empty before."""
        if self.outcome is None:
            return ""
        if self.state is FileState.FAILED:
            return without_name(self.outcome.reason, self.item.source.name)
        done = (
            f"{duration(self.seconds)}, {self.outcome.device}" if self.seconds is not None else ""
        )
        return ": ".join(filter(None, (done, " ".join(self.outcome.report.notices))))

    @property
    def parts(self) -> str:
        """The times of a file that is done, and a line for each notice; or empty."""
        if self.outcome is None or self.state is not FileState.DONE:
            return ""
        done = self.outcome
        times = (
            f"Read in {duration(done.read)}, filtered in {duration(done.filtered)}, "
            f"written in {duration(done.written)}."
        )
        return "\n".join((times, *done.report.notices))


class BatchQueue:
    """Files in the order in which they are filtered.

    Times are those of a clock that the caller reads, in seconds.
    """

    def __init__(self) -> None:
        self.rows: list[FileRow] = []
        self.running = self.paused = self.stopping = False
        self._places: dict[Path, int] = {}
        self._counts: Counter[FileState] = Counter()
        self._worked, self._since = 0.0, 0.0

    def __len__(self) -> int:
        return len(self.rows)

    def show(self, items: Sequence[Item]) -> None:
        known = {row.item: row for row in self.rows}
        self.rows = [known.get(item) or FileRow(item) for item in items]
        self._places = {row.item.source: place for place, row in enumerate(self.rows)}
        self._counts = Counter(row.state for row in self.rows)

    def without(self, places: Collection[int]) -> list[Item]:
        return [row.item for place, row in enumerate(self.rows) if place not in places]

    def note(self, event: Event) -> int | None:
        """Follow a file; return its place, or None if it is no longer here."""
        if isinstance(event, FileOutcome):
            item, state, outcome = event.item, event.status, event
        else:
            item, state, outcome = *event, None
        place = self._places.get(item.source)
        if place is not None:
            self._set(self.rows[place], state)
            self.rows[place].outcome = outcome
        return place

    # --- the clock ---

    def begin(self, now: float) -> None:
        for row in self.rows:
            row.outcome = None
            self._set(row, FileState.WAITING)
        self.running, self.paused, self.stopping = True, False, False
        self._worked, self._since = 0.0, now

    def pause(self, now: float) -> None:
        self._worked += now - self._since
        self.paused = True

    def go_on(self, now: float) -> None:
        self._since = now
        self.paused = False

    def stop(self, now: float) -> None:
        """The batch was cancelled; files that are written are still finished."""
        if not self.paused:
            self.pause(now)
        self.stopping = True

    def end(self, now: float) -> None:
        """The batch has ended: files that were not finished wait again."""
        if not self.paused:
            self.pause(now)
        self.running = self.paused = self.stopping = False
        for row in self.rows:
            if row.state not in ENDED:
                self._set(row, FileState.WAITING)

    def _set(self, row: FileRow, state: FileState) -> None:
        self._counts[row.state] -= 1
        self._counts[state] += 1
        row.state = state

    # --- progress ---

    @property
    def ended(self) -> int:
        return sum(self._counts[state] for state in ENDED)

    @property
    def failed(self) -> int:
        return self._counts[FileState.FAILED]

    @property
    def left(self) -> int:
        return len(self.rows) - self.ended

    def seconds(self, now: float) -> float:
        return self._worked + (now - self._since if self.running and not self.paused else 0.0)

    def seconds_left(self, now: float) -> float | None:
        """Return the estimated seconds of work left; None until some files are done."""
        done = self._counts[FileState.DONE] + self._counts[FileState.FAILED]
        if done < _FEWEST or not self.left:
            return None
        return self.seconds(now) / done * self.left

    def describe(self, now: float) -> str:
        """Return the progress in a line: ``12 of 200 files, 1 failed, 3 min left``."""
        count = len(self.rows)
        if not count:
            return ""
        if not self.running and not self.ended:
            return f"{count} files" if count > 1 else "1 file"
        parts = [f"{self.ended} of {count} files"]
        if self._counts[FileState.SKIPPED]:
            parts.append(f"{self._counts[FileState.SKIPPED]} done before")
        if self.failed:
            parts.append(f"{self.failed} failed")
        left = self.seconds_left(now)
        if self.stopping:
            parts.append("stopping…")
        elif self.paused:
            parts.append("paused")
        elif self.running:
            parts.append(f"{about(left)} left" if left is not None else "")
        elif self.left:
            parts.append("stopped")
        else:
            parts.append(f"took {about(self.seconds(now))}")
        return ", ".join(filter(None, parts))
