"""The settings of the window as one object, which widgets write to and show.

    a widget  --> set_filter, edit, set_options ...  --> settings, problem, places
    followers <-- the names of the attributes that are others now

A wish that the filter or the machine does not offer is kept for one that does: `place` and
`border` are what a run takes now.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from kernelscope import filters
from kernelscope.base.errors import InvalidParameter
from kernelscope.engine.area import Area
from kernelscope.engine.backend import Availability, Backend
from kernelscope.engine.options import DEFAULT_OPTIONS, Device, RunOptions
from kernelscope.engine.step import ESTIMATE, Step
from kernelscope.gui.model.filter_groups import by_category
from kernelscope.gui.model.run_settings import RunSettings
from kernelscope.gui.model.rungs import AUTO, Rung, RungPlace, chosen_place, rungs
from kernelscope.schema.blocks import block_name, read_block, takes_block
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.samples import Kind

FIRST_FILTER = "median"
"""Chosen at the very first start: shows the most on a noisy picture."""

MIB = 1 << 20

MOST_REPEATS, MOST_MIB = 999, 999_999
"""Bounds of what the window offers."""

_MOST_DIGITS = 9
"""A longer number is damaged."""

KIND, FILTER, VALUES, OPTIONS = "kind", "filter", "values", "options"
SETTINGS, PLACES, REGION = "settings", "places", "region"
"""Names of what changes. `VALUES` and `OPTIONS` are others than the widgets show, `SETTINGS` are
those of the next run, `PLACES` where it can run and goes."""


@dataclass(frozen=True)
class Values:
    """The parameters of a filter, as they were left; numbers of `automatic` are estimates."""

    numbers: Mapping[str, Any]
    automatic: tuple[str, ...] = ()
    problem: InvalidParameter | None = field(default=None, compare=False)  # in place of a number

    def same_as(self, other: Values) -> bool:
        """Return whether both are the same in value and type.

        Masks count as different unless they are one object: comparing takes as long as checking.
        """
        return (
            self.problem is other.problem is None
            and self.automatic == other.automatic
            and self.numbers.keys() == other.numbers.keys()
            and all(_same(value, other.numbers[name]) for name, value in self.numbers.items())
        )


def _same(one: Any, other: Any) -> bool:
    return one is other or (type(one) is type(other) is not tuple and bool(one == other))


Fields: TypeAlias = frozenset[str]
"""Names of the attributes that are others now."""

Watcher: TypeAlias = Callable[[Fields], object]


class Observed:
    """Calls its followers when attributes have changed.

    Those of `follow` are called at the end of each change: the form and the picture. Those of
    `follow_later` are called once for all changes of a turn of the event loop, after the paint,
    if `schedule` brings its argument there.
    """

    def __init__(self, schedule: Callable[[], object] | None = None) -> None:
        self.schedule: Callable[[], object] = schedule or (lambda: None)
        """Has `call_later` called soon."""
        self._now: list[Watcher] = []
        self._later: list[Watcher] = []
        self._changed: set[str] = set()
        self._due: set[str] = set()
        self._depth = 0

    def follow(self, follower: Watcher) -> None:
        """Call `follower` at the end of each change."""
        self._now.append(follower)

    def follow_later(self, follower: Watcher) -> None:
        """Call `follower` once for several changes, after the paint."""
        self._later.append(follower)

    @contextlib.contextmanager
    def changing(self, *fields: str) -> Iterator[None]:
        """Note that attributes change in this block, whose changes are one."""
        self._depth += 1
        try:
            yield
        finally:
            self._changed.update(fields)
            self._depth -= 1
            if not self._depth:
                self._tell()

    def _tell(self) -> None:
        # A follower may change something itself, as the form does that rounds a number.
        while self._changed and not self._depth:
            fields = frozenset(self._changed)
            self._changed.clear()
            self._due |= fields
            with self.changing():
                for follower in tuple(self._now):
                    follower(fields)
        if self._due:
            self.schedule()

    def call_later(self) -> None:
        """Call those of `follow_later`, if anything has changed since."""
        fields = frozenset(self._due)
        self._due.clear()
        if fields:
            for follower in tuple(self._later):
                follower(fields)


class Session(Observed):
    """The filter, its parameters and the options of a run."""

    def __init__(
        self,
        backends: Mapping[str, Backend],
        remembered: Callable[[str], Mapping[str, str]] = lambda _: {},
        filter_id: str = FIRST_FILTER,
    ) -> None:
        super().__init__()
        self._backends = backends
        self._remembered = remembered
        """Returns the texts of a group that `texts` returned in an earlier session."""
        self._availability: Mapping[str, Availability] = {}
        self.kind = Kind.PICTURE
        self._others: dict[Kind, str] = {}
        """The filters chosen for the kinds that are not shown."""
        self._values: dict[str, Values] = {}
        self._wished = DEFAULT_OPTIONS
        self._wished_border = Border.REFLECT
        self._wishes_grey = False
        self.refused: InvalidParameter | None = None
        """The reason why an option is no number at the moment."""
        self._within: Area | None = None
        self.region: tuple[str, Area | None] = ("", None)
        """The region of interest that is chosen, by name, to filter in."""
        self.settings: RunSettings | None = None
        """The step and the options of the next run; None while they are not valid."""
        self.problem: InvalidParameter | None = None
        """Why they are not."""
        self._values_problem: InvalidParameter | None = None
        self.rungs: tuple[Rung, ...] = ()
        """The places where the filter can run, or why it cannot."""
        self._rungs_of: tuple[str, Mapping[str, Availability]] | None = None
        self.place = AUTO
        """Where the next run goes."""
        offered = _offered(self.kind)
        known = (each for each in (filter_id, FIRST_FILTER) if each in offered)
        self.filter_id = next(known, offered[0])
        self._recall(remembered("run"))
        self._settle()
        self._changed.clear()  # nobody follows yet

    # --- reading ---

    @property
    def spec(self) -> FilterSpec:
        """The filter that is chosen."""
        return filters.get(self.filter_id)

    @property
    def border(self) -> Border:
        """The border of the next run."""
        return self._border_for(self.spec)

    @property
    def wishes_grey(self) -> bool:
        """Whether pictures are converted to greyscale first."""
        return self._wishes_grey

    @property
    def grey(self) -> bool:
        """Whether to convert to greyscale first; volumes are grey."""
        return self._wishes_grey and self.kind is Kind.PICTURE

    @property
    def within(self) -> Area | None:
        """The part of pictures that is filtered; None for all of it."""
        return self._within if self.kind is Kind.PICTURE else None

    @property
    def values(self) -> Values:
        """The parameters of the filter."""
        return self.values_of(self.filter_id)

    @property
    def automatic(self) -> tuple[str, ...]:
        """The parameters that every run estimates again."""
        return self.values.automatic

    @property
    def values_problem(self) -> str:
        """The reason why the parameters are not valid; empty if they are."""
        return "" if self._values_problem is None else str(self._values_problem)

    @property
    def wished(self) -> RunOptions:
        """The options as the user chose them, on whatever machine."""
        return self._wished

    def require(self) -> RunSettings:
        """Return the settings of the next run; raises `InvalidParameter`."""
        if self.settings is None:
            assert self.problem is not None
            raise self.problem
        return self.settings

    def options_at(self, place: RungPlace) -> RunOptions:
        """Return the options of a run at another place; raises `InvalidParameter`."""
        if self.refused is not None:
            raise self.refused
        block = self._wished.block if self.takes_block(place) else None
        return replace(self._wished, device=place.device, level=place.level, block=block)

    def takes_block(self, place: RungPlace) -> bool:
        """Return whether the user may choose the blocks there."""
        return place.level is not None and takes_block(self.spec, place.level)

    def values_of(self, filter_id: str) -> Values:
        """Return the parameters of a filter as they were left, in this session or before it."""
        if filter_id not in self._values:
            spec = filters.get(filter_id)
            numbers = dict(spec.defaults())
            automatic = {each.name for each in spec.parameters if each.is_estimated}
            for name, text in self._remembered(f"filters/{filter_id}").items():
                with contextlib.suppress(InvalidParameter):  # it no longer fits the filter
                    parameter = spec.parameter(name)
                    if text != ESTIMATE:
                        numbers[name] = parameter.parse(text)
                        automatic.discard(name)
            self._values[filter_id] = Values(numbers, _in_order(spec, automatic))
        return self._values[filter_id]

    def step_of(self, filter_id: str) -> Step:
        """Return the step of another filter, as it would be if it were chosen.

        Parameters that runs estimate are `ESTIMATE`. Raises `InvalidParameter`.
        """
        values = self.values_of(filter_id)
        if values.problem is not None:
            raise values.problem
        spec = filters.get(filter_id)
        numbers = {**values.numbers, **dict.fromkeys(values.automatic, ESTIMATE)}
        return Step.create(filter_id, numbers, border=self._border_for(spec), grey=self.grey)

    def _border_for(self, spec: FilterSpec) -> Border:
        return self._wished_border if self._wished_border in spec.borders else spec.borders[0]

    # --- writing ---

    def set_filter(self, filter_id: str) -> None:
        """Choose a filter; one that is not offered for the open kind changes nothing."""
        if filter_id in _offered(self.kind) and filter_id != self.filter_id:
            with self.changing(FILTER):
                self.filter_id = filter_id
                self._settle()

    def set_kind(self, kind: Kind, *, microscope: bool = False) -> None:
        """Offer the filters for pictures or for volumes, and choose the last one used there.

        Without one, volumes of a `microscope` get no filter that supposes the noise of MRI. The
        emulated GPU is not carried over: what takes a second here takes many minutes there.
        """
        if kind is self.kind:
            return
        with self.changing(KIND, FILTER, OPTIONS):
            self._others[self.kind], self.kind = self.filter_id, kind
            first = FIRST_FILTER if microscope else next(iter(_offered(kind)))
            before, self.filter_id = self.spec, self._others.get(kind, first)
            if self.spec.kind is not before.kind and self._wished.device is Device.EMULATED:
                self._wished = replace(self._wished, device=Device.AUTO, level=None)
            self._settle()

    def set_availability(self, availability: Mapping[str, Availability]) -> None:
        """Offer the devices that can be used; one that is not named is still looked for."""
        with self.changing(PLACES):
            self._availability = dict(availability)
            self._settle()

    def edit(self, values: Values) -> None:
        """Take the values that stand in the form of the filter."""
        if not self.values.same_as(values):
            with self.changing():
                self._values[self.filter_id] = values
                self._settle()

    def set_values(self, filter_id: str, numbers: Mapping[str, Any]) -> None:
        """Set parameters of a filter; others keep their values."""
        with self.changing(VALUES):
            old = self.values_of(filter_id)
            automatic = tuple(name for name in old.automatic if name not in numbers)
            self._values[filter_id] = Values({**old.numbers, **numbers}, automatic)
            self._settle()

    def set_estimates(self, filter_id: str, numbers: Mapping[str, float]) -> None:
        """Set numbers that were estimated; those that every run estimates stay so."""
        with self.changing(VALUES):
            old = self.values_of(filter_id)
            self._values[filter_id] = replace(old, numbers={**old.numbers, **numbers})
            self._settle()

    def reset(self) -> None:
        """Set the parameters of the filter to their defaults."""
        with self.changing(VALUES):
            spec = self.spec
            automatic = {each.name for each in spec.parameters if each.is_estimated}
            self._values[spec.id] = Values(spec.defaults(), _in_order(spec, automatic))
            self._settle()

    def set_border(self, border: Border) -> None:
        """Choose the border."""
        with self.changing(OPTIONS):
            self._wished_border = border
            self._settle()

    def set_grey(self, grey: bool) -> None:
        """Convert to greyscale first, or not."""
        with self.changing(OPTIONS):
            self._wishes_grey = grey
            self._settle()

    def offer_region(self, name: str, area: Area | None) -> None:
        """Offer a region to filter in, or none; the filter follows one that it is limited to."""
        with self.changing(REGION):
            self.region = name, area
            if self._within is not None and area is not None:
                self._within = area
            self._settle()

    def limit(self, limited: bool) -> None:
        """Filter only in the region that is offered, or everywhere."""
        with self.changing(REGION):
            self._within = self.region[1] if limited else None
            self._settle()

    def choose_place(self, place: RungPlace) -> None:
        """Run there from now on; where the filter cannot, the nearest place stands in."""
        self.set_options(replace(self._wished, device=place.device, level=place.level))

    def set_options(self, wished: RunOptions, refused: InvalidParameter | None = None) -> None:
        """Choose options; `refused` is why one of them is not valid while it is typed."""
        with self.changing(OPTIONS):
            self._wished, self.refused = wished, refused
            self._settle()

    def show(self, settings: RunSettings) -> None:
        """Take the settings of a run, as far as they are offered now."""
        if settings.filter_id not in _offered(self.kind):
            return
        with self.changing(VALUES, OPTIONS, REGION):
            if settings.filter_id != self.filter_id:
                self.set_filter(settings.filter_id)
            step, options = settings.step, settings.options
            self._values[self.filter_id] = Values(step.parameters, settings.automatic)
            place = RungPlace(options.device, options.level)
            if place == chosen_place(self._wished_place, self.rungs):
                place = self._wished_place
            block = options.block if self.takes_block(place) else self._wished.block
            limit = (options.memory_limit or 0) // MIB * MIB or None  # as the window shows it
            self._wished = replace(
                options, device=place.device, level=place.level, block=block, memory_limit=limit
            )
            self.refused = None
            if step.border is not self.border:
                self._wished_border = step.border
            if self.kind is Kind.PICTURE:
                self._wishes_grey, self._within = step.grey, step.within
            self._settle()

    @property
    def _wished_place(self) -> RungPlace:
        return RungPlace(self._wished.device, self._wished.level)

    def _settle(self) -> None:
        """Check everything once, and note what is new."""
        before, offered = self.settings, (self.rungs, self.place)
        problem, self.problem = self.problem, None
        if self._rungs_of != (self.filter_id, self._availability):
            self._rungs_of = self.filter_id, self._availability
            self.rungs = rungs(self.spec, self._backends, self._availability)
        self.place = chosen_place(self._wished_place, self.rungs)
        try:
            self.settings = self._checked()
        except InvalidParameter as error:
            self.settings, self.problem = None, error
        if offered != (self.rungs, self.place):
            self._changed.add(PLACES)
        if self.settings != before or str(problem) != str(self.problem):
            self._changed.add(SETTINGS)

    def _checked(self) -> RunSettings:
        values, self._values_problem = self.values, None
        try:
            if values.problem is not None:
                raise values.problem
            step = Step.of_numbers(
                self.filter_id,
                values.numbers,
                border=self.border,
                grey=self.grey,
                within=self.within,
            )
        except InvalidParameter as error:
            self._values_problem = error
            raise
        return RunSettings(step, self.options_at(self.place), values.automatic)

    # --- from one start of the program to the next ---

    def texts(self) -> dict[str, dict[str, str]]:
        """Return the settings as texts to remember, by group."""
        chosen = self.filter_id if self.kind is Kind.PICTURE else self._others[Kind.PICTURE]
        found = {"": {"filter": chosen}, "run": self._option_texts()}
        for filter_id, values in self._values.items():
            spec = filters.get(filter_id)
            if values.problem is None:
                found[f"filters/{filter_id}"] = {
                    name: ESTIMATE
                    if name in values.automatic
                    else spec.parameter(name).format(value)
                    for name, value in values.numbers.items()
                }
        return found

    def _option_texts(self) -> dict[str, str]:
        options = self._wished
        return {
            "device": options.device.value,
            "level": options.level or "",
            "border": self._wished_border.value,
            "grey": "on" if self._wishes_grey else "off",
            # Regions are not remembered: the next picture would be filtered in an unseen one.
            "within": "",
            "block": block_name(options.block) if options.block else "",
            "repeat": str(options.repeat),
            "memoryLimit": str((options.memory_limit or 0) // MIB),
        }

    def _recall(self, texts: Mapping[str, str]) -> None:
        """Take the options of an earlier session, as far as they can be read."""
        device, border = texts.get("device", ""), texts.get("border", "")
        self._wished_border = Border(border) if border in list(Border) else Border.REFLECT
        self._wishes_grey = texts.get("grey") == "on"
        block = None
        with contextlib.suppress(InvalidParameter):  # none was chosen
            block = read_block(texts.get("block", ""))
        self._wished = RunOptions(
            Device(device) if device in list(Device) else Device.AUTO,
            texts.get("level") or None,
            _number(texts.get("repeat", ""), 1, MOST_REPEATS),
            _number(texts.get("memoryLimit", ""), 0, MOST_MIB) * MIB or None,
            block=block,
        )


def _offered(kind: Kind) -> list[str]:
    """Return the filters that are offered for a kind, in the order of the list."""
    return [spec.id for specs in by_category(kind).values() for spec in specs]


def _in_order(spec: FilterSpec, names: set[str]) -> tuple[str, ...]:
    return tuple(each.name for each in spec.parameters if each.name in names)


def _number(text: str, least: int, most: int) -> int:
    """Return the number that was remembered, within its bounds, or else the least one."""
    short = text.isdecimal() and len(text) <= _MOST_DIGITS
    return min(max(int(text), least), most) if short else least
