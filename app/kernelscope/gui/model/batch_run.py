"""A batch of the window: its queue, its order, and its news for another thread."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kernelscope.base.durations import about, duration
from kernelscope.base.text import without_name
from kernelscope.big.batch.conductor import Batch, FileOutcome, refusal
from kernelscope.big.batch.item import FileState, Handling, Hints, Item, Pause
from kernelscope.big.batch.journal import Journal
from kernelscope.engine.backend import Backend
from kernelscope.engine.control import CancelToken
from kernelscope.engine.costs import Costs
from kernelscope.engine.options import RunOptions
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.step import Step
from kernelscope.schema.devices import Device

BatchNews = tuple[Item, FileState] | FileOutcome  # a stage that begins, or the outcome of a file

_FEWEST = 2  # files after which the time left is estimated: the first also waits for compiling


ENDED = frozenset((FileState.DONE, FileState.SKIPPED, FileState.FAILED))


@dataclass(eq=False)
class FileRow:
    item: Item
    state: FileState = FileState.WAITING
    outcome: FileOutcome | None = None  # once it is there

    @property
    def state_name(self) -> str:
        name = "done before" if self.state is FileState.SKIPPED else self.state.value
        return f"{name}, cut off" if self.is_cut_off else name

    @property
    def is_cut_off(self) -> bool:
        return self.outcome is not None and self.outcome.is_cut_off

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
    """Files in the order in which they are filtered; times are the caller's, in seconds."""

    def __init__(self) -> None:
        self.rows: list[FileRow] = []
        self.running = self.paused = self.stopping = False
        self._places: dict[Path, int] = {}
        self._counts: Counter[FileState] = Counter()
        self._cut_off: set[Item] = set()
        self._worked, self._since = 0.0, 0.0

    def __len__(self) -> int:
        return len(self.rows)

    def show(self, items: Sequence[Item]) -> None:
        known = {row.item: row for row in self.rows}
        self.rows = [known.get(item) or FileRow(item) for item in items]
        self._places = {row.item.source: place for place, row in enumerate(self.rows)}
        self._counts = Counter(row.state for row in self.rows)
        self._cut_off.intersection_update(items)

    def place(self, source: Path) -> int | None:
        return self._places.get(source)

    def without(self, places: Collection[int]) -> list[Item]:
        return [row.item for place, row in enumerate(self.rows) if place not in places]

    def note(self, event: BatchNews) -> int | None:
        """Follow a file; return its place, or None if it is no longer here."""
        if isinstance(event, FileOutcome):
            item, state, outcome = event.item, event.status, event
        else:
            item, state, outcome = *event, None
        place = self.place(item.source)
        if place is not None:
            self._set(self.rows[place], state)
            self.rows[place].outcome = outcome
            if outcome is not None and outcome.is_cut_off:
                self._cut_off.add(item)
        return place

    # --- the clock ---

    def begin(self, now: float) -> None:
        self._cut_off.clear()
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
        if self._cut_off:
            parts.append(f"{len(self._cut_off)} cut off")
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


KEEP, REPLACE = "Keep, and skip files that are done", "Replace"
"""The choices for results that are in the output folder."""

HINTS = Hints(
    own_input="Choose another output folder.",
    there=f"Set Existing results to “{REPLACE}”, or move it.",
    earlier="Choose another output folder.",
    other_recipe=f"Choose another output folder, or set Existing results to “{REPLACE}”.",
    memory="Close other programs.",
    lossy="Or tick “Allow losses of the format”.",
    blocks="“kernelscope apply --memory 2G” on the command line",
)

AS_INPUT = "as each file"  # the name of the format by which results keep that of their file


@dataclass(frozen=True)
class BatchSettings:
    """The settings that the window keeps between starts."""

    out: str = ""  # output folder; empty for one next to the files
    suffix: str = ""  # empty for that of each file
    device: Device = Device.AUTO
    replaces: bool = False  # whether files of the names of results are replaced
    lossy: bool = False  # whether a format may lose something
    quality: int = 0  # that of JPEGs; 0 for that of the preferences, or the usual one

    def texts(self) -> dict[str, str]:
        return {
            "out": self.out,
            "suffix": self.suffix,
            "device": self.device.value,
            "replaces": "on" if self.replaces else "off",
            "lossy": "on" if self.lossy else "off",
            "quality": str(self.quality),
        }

    @classmethod
    def of(cls, texts: Mapping[str, str]) -> BatchSettings:
        """Return stored settings; those that are not there, or not valid, have their defaults."""
        device, quality = texts.get("device", ""), texts.get("quality", "")
        known = device in tuple(Device)
        return cls(
            texts.get("out", ""),
            texts.get("suffix", ""),
            Device(device) if known else Device.AUTO,
            texts.get("replaces") == "on",
            texts.get("lossy") == "on",
            int(quality) if quality.isdecimal() and int(quality) <= 100 else 0,
        )


@dataclass(frozen=True)
class BatchOrder:
    recipe: Recipe
    items: tuple[Item, ...]
    out: Path
    settings: BatchSettings
    resumes: bool = True
    """Go on where an earlier batch stopped; a journal of one is forgotten otherwise."""
    quality: int | None = None
    """That of a JPEG; None for the usual one, of which journals say nothing."""

    @property
    def handling(self) -> Handling:
        return Handling(lossy=self.settings.lossy, quality=self.quality)

    def same_work(self, other: BatchOrder | None) -> bool:
        """Return whether `other` would make the same results in the same folder."""
        return other is not None and replace(self, resumes=other.resumes) == other


class BatchRun:
    """A batch whose news another thread takes when it likes; others may use the backends."""

    def __init__(self, order: BatchOrder, backends: Mapping[str, Backend], costs: Costs) -> None:
        self.order, self._backends, self._costs = order, backends, costs
        self.pause = Pause()
        self._token = CancelToken()
        self._news: deque[BatchNews] = deque()

    def work(self) -> None:
        """Run the batch on this thread; raises `AppError` for its journal or folder."""
        order, settings = self.order, self.order.settings
        journal = Journal(
            order.out,
            order.recipe,
            resume=order.resumes,
            anew=not order.resumes,
            handling=order.handling,
            hints=HINTS,
        )

        def begun(item: Item, stage: FileState) -> None:
            self._news.append((item, stage))

        try:
            Batch(
                order.recipe,
                order.items,
                self._backends,
                RunOptions(device=settings.device),
                handling=order.handling,
                overwrite=settings.replaces,
                costs=self._costs,
                hints=HINTS,
            ).run(journal, self._token, self._news.append, begun=begun, pause=self.pause)
        finally:
            journal.close()

    def cancel(self) -> None:
        """Stop; files that are being written are finished."""
        self._token.cancel()

    def news(self) -> Iterator[BatchNews]:
        """Yield the events since the last call, on any thread."""
        while self._news:
            yield self._news.popleft()


def default_out(inputs: Sequence[Path]) -> Path:
    first = inputs[0]
    if first.is_dir():
        return first.with_name(f"{first.name}-filtered")
    return first.parent / "filtered"


def refused(items: Sequence[Item], recipe: Recipe, handling: Handling) -> str:
    """Return how many results cannot be written, and why; empty if none is known by now."""
    reasons = Counter(
        refusal(each, recipe, handling, HINTS).removeprefix(f"{each.target.name}: ")
        for each in items
    )
    del reasons[""]
    return " ".join(
        f"{count} of {len(items)} files will fail: {text}" for text, count in reasons.items()
    )


def described(recipe: Recipe) -> str:
    """Return a recipe in a line: ``Median: 5×5 → Mean: 3×3, wrap border``."""
    return " → ".join(_described(step) for step in recipe.steps)


def _described(step: Step) -> str:
    usual = step.filter.chips(step.parameters)
    texts = [chip.text for chip in usual if chip.usual and chip.name not in step.estimates]
    settings = ", ".join(filter(None, (*texts, step.caption)))
    return f"{step.name}: {settings}" if settings else step.name
