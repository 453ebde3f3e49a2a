"""The state of the window as one object, which widgets write to and show.

    a widget  --> set_filter, edit, set_options ...  --> settings, problem, places
              --> subject.push, undo, show_output    --> the input, its output, the view
    followers <-- the names of the attributes that are others now

A wish that the filter or the machine does not offer is kept for one that does: `place` and
`border` are those of a run now.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kernelscope import filters
from kernelscope.base.errors import InvalidParameter
from kernelscope.bench.recorded import Recorded
from kernelscope.engine.area import Area
from kernelscope.engine.backend import Availability, Backend
from kernelscope.engine.options import DEFAULT_OPTIONS, Device, RunOptions
from kernelscope.engine.request import Request, RunSettings
from kernelscope.engine.step import ESTIMATE, Step
from kernelscope.gui.model.comparison import View
from kernelscope.gui.model.filter_groups import by_category
from kernelscope.gui.model.freshness import Freshness, freshness
from kernelscope.gui.model.gallery import Gallery
from kernelscope.gui.model.history import Moment, parts_of
from kernelscope.gui.model.ladder import AUTO, Rung, RungPlace, chosen_place, rungs
from kernelscope.gui.model.pipeline import Pipeline, kept_steps
from kernelscope.gui.session.canvas_view import CanvasView
from kernelscope.gui.session.subject import MOMENT, Fields, Observed, Subject
from kernelscope.gui.session.volume_subject import VolumeSubject
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan
from kernelscope.schema.blocks import block_name, read_block, takes_block
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.samples import Kind

FIRST_FILTER = "median"  # chosen at the very first start: shows the most on a noisy picture

MIB = 1 << 20

MOST_REPEATS, MOST_MIB = 999, 999_999  # bounds of the options in the window

_MOST_DIGITS = 9  # a longer number is damaged

KIND, FILTER, VALUES, OPTIONS = "kind", "filter", "values", "options"
SETTINGS, PLACES, REGION, VIEW = "settings", "places", "region", "view"
RECORDED = "recorded"
"""Names of changes. `KIND`: another subject is in front. `VALUES` and `OPTIONS` are others
than the widgets show, `SETTINGS` are those of the next run, `PLACES` where it can run and goes.
`RECORDED`: times of other machines were read."""

OF_SETTINGS = frozenset({KIND, FILTER, VALUES, OPTIONS, SETTINGS, PLACES, REGION})
"""Those of the settings, which are remembered."""


@dataclass(frozen=True)
class Values:
    """The parameters of a filter, as they were left; numbers of `automatic` are estimates."""

    numbers: Mapping[str, Any]
    automatic: tuple[str, ...] = ()
    problem: InvalidParameter | None = field(default=None, compare=False)  # in place of a number

    def same_as(self, other: Values) -> bool:
        """Compare value and type; masks by identity: comparing them takes as long as checking."""
        return (
            self.problem is other.problem is None
            and self.automatic == other.automatic
            and self.numbers.keys() == other.numbers.keys()
            and all(_same(value, other.numbers[name]) for name, value in self.numbers.items())
        )


def _same(one: Any, other: Any) -> bool:
    return one is other or (type(one) is type(other) is not tuple and bool(one == other))


class Session(Observed):
    """The filter, its parameters and the options of a run, and the inputs that are open.

    - `subject`: the one in front, whose input is filtered.
    - `view`: the output, or a difference.
    - `wanted_gain`: of differences; None for the one that shows most.
    - `gallery`: the runs, with their pictures.
    - `joins`: whether volumes that are opened join others; they take the place of a sample else.
    - `carried`: steps of an earlier session, by the files that have them once they are shown.
    - `live`: whether the output follows the settings; a result of others is a step for Undo then.
    """

    def __init__(
        self,
        backends: Mapping[str, Backend],
        remembered: Callable[[str], Mapping[str, str]] = lambda _: {},
        filter_id: str = FIRST_FILTER,
    ) -> None:
        super().__init__()
        self.backends = backends
        self._remembered = remembered
        """Returns the texts of a group that `texts` returned in an earlier session."""
        self._availability: Mapping[str, Availability] = {}
        self.pictures, self.volumes = Subject[Image, Image](self, CanvasView()), VolumeSubject(self)
        self.subjects: tuple[Subject[Any, Any], ...] = (self.pictures, self.volumes)
        self.subject: Subject[Any, Any] = self.pictures
        self.recorded = Recorded()  # times of other machines, once they are read
        self.view = View.OUTPUT
        self.wanted_gain: int | None = None
        self.live = True
        self.gallery = Gallery()
        self.joins = False
        self.carried: dict[Path, Pipeline] = {}
        self.notice = ""  # which steps were kept or chosen for the input that is shown next
        for each in self.subjects:
            each.follow(self._relay)
        self._others: dict[Kind, str] = {}  # the filters chosen for the kinds that are not shown
        self._values: dict[str, Values] = {}
        self._noises: dict[Kind, object] = {}  # the kinds of noise that were chosen last
        self._wished = DEFAULT_OPTIONS
        self._wished_border = Border.REFLECT
        self.wishes_grey = False
        self._wishes_3d = False
        self._flat = False  # whether the volumes have a single slice: masks stay in it
        self.refused: InvalidParameter | None = None
        """The reason why an option is no number at the moment."""
        self._within: Area | None = None
        self.region: tuple[str, Area | None] = ("", None)
        """The region of interest that is chosen, by name, to filter in."""
        self.settings: RunSettings | None = None
        """The step and the options of the next run; None while they are not valid."""
        self.problem: InvalidParameter | None = None  # why they are not
        self._values_problem: InvalidParameter | None = None
        self.rungs: tuple[Rung, ...] = ()  # the places where the filter can run, or why it cannot
        self._rungs_of: tuple[str, Mapping[str, Availability]] | None = None
        self.place = AUTO  # where the next run goes
        offered = _offered(self.kind)
        known = (each for each in (filter_id, FIRST_FILTER) if each in offered)
        self.filter_id = next(known, offered[0])
        self._recall(remembered("run"))
        self._settle()
        self._changed.clear()  # nobody follows yet

    # --- the inputs ---

    def _relay(self, fields: Fields) -> None:
        with self.changing(*fields):
            if MOMENT not in fields:
                return
            source = self.volumes.source
            flat = source is not None and source.volumes[0].flat_axis is not None
            if flat is not self._flat:
                self._flat = flat
                self.note(FILTER)
                self._settle()
            elif self.wishes_grey:
                self._settle()  # a grey picture is not converted

    @property
    def kind(self) -> Kind:
        return self.subject.kind

    @property
    def other(self) -> Subject[Any, Any]:
        return next(each for each in self.subjects if each is not self.subject)

    def subject_of(self, opened: object) -> Subject[Any, Any]:
        """Return the subject that an opened file or the source of a result belongs to."""
        return self.pictures if isinstance(opened, Image) else self.volumes

    @property
    def freshness(self) -> Freshness | None:
        return freshness(self.subject.shown, self.subject.wanted())

    def set_view(self, view: View, gain: int | None) -> None:
        with self.changing(VIEW):
            self.view, self.wanted_gain = view, gain

    def with_steps(self, subject: Subject[Any, Any], moment: Moment[Any, Any]) -> Moment[Any, Any]:
        """Return an opened moment with its own steps, those shown, or of `subject`, if they fit."""
        paths = [each.path for each in parts_of(moment.source) if each.path is not None]
        own = next((self.carried.pop(each) for each in paths if each in self.carried), None)
        if own is not None:  # where it runs was not kept with it
            own = own.edited(replace(own.present, options=self._wished))
        offered = [own]
        for each in dict.fromkeys((self.subject, subject)):
            pipeline = each.pipeline
            if pipeline is not None and each.pending is None:
                pipeline = pipeline.reopened(each.moment.steps)
                if each is self.subject and self.kind is Kind.PICTURE and self.wishes_grey:
                    present = pipeline.present  # a grey picture is not converted, others may be
                    step = replace(present.step, grey=True)
                    pipeline = pipeline.edited(replace(present, step=step))
            offered.append(pipeline)
        for pipeline in offered:
            if pipeline is None or (len(pipeline.steps) < 2 and pipeline is not own):
                continue
            kept = kept_steps(pipeline, moment.source, subject.slice_axis)
            if kept is not None:
                self.notice = kept.describe()
                steps = kept.pipeline if len(kept.pipeline.steps) > 1 else None
                return replace(moment, pipeline=steps, settings=kept.pipeline.present)
            self.notice = "None of the steps can be applied to it."
        return moment

    def take_notice(self) -> str:
        """Return once which steps were kept or chosen for the input that is shown."""
        notice, self.notice = self.notice, ""
        return notice

    def set_recorded(self, recorded: Recorded) -> None:
        with self.changing(RECORDED):
            self.recorded = recorded

    def arrange(self, **changes: object) -> None:
        with self.changing():
            for each in (self.pictures, self.volumes):
                each.view.arrange(**changes)

    def bring_to_front(self, subject: Subject[Any, Any]) -> None:
        """Filter another input, with the filter that was last used on its kind.

        Without one, volumes of a microscope get no filter that supposes the noise of MRI. The
        emulated GPU is not carried over: a run of a second takes many minutes there.
        """
        if subject is self.subject:
            return
        source, before = subject.source, self.spec
        microscope = isinstance(source, Scan) and source.microscope
        with self.changing(KIND, FILTER, OPTIONS):
            self._others[self.kind], self.subject = self.filter_id, subject
            first = FIRST_FILTER if microscope else next(iter(_offered(self.kind)))
            self.filter_id = self._others.get(self.kind, first)
            if self.spec.kind is not before.kind and self._wished.device is Device.EMULATED:
                self._wished = replace(self._wished, device=Device.AUTO, level=None)
            self._settle()
            due = subject.take_due()
            if due is not None:
                self.show(due)

    # --- reading ---

    @property
    def spec(self) -> FilterSpec:
        chosen = filters.get(self.filter_id)
        return chosen.in_3d if chosen.in_3d and self.in_3d else chosen

    @property
    def offers_3d(self) -> bool:
        return self.is_deep and filters.get(self.filter_id).in_3d is not None

    @property
    def in_3d(self) -> bool:
        """Whether masks go through the slices of volumes."""
        return self._wishes_3d and self.is_deep

    @property
    def is_deep(self) -> bool:
        """Whether volumes of several slices are in front."""
        return self.kind is Kind.VOLUME and not self._flat

    @property
    def border(self) -> Border:
        return self._border_for(self.spec)

    @property
    def grey(self) -> bool:
        return self.wishes_grey and self.has_colours

    @property
    def has_colours(self) -> bool:
        """Whether the input may have any: it is no volume and no grey picture."""
        source = self.subject.source
        return self.kind is Kind.PICTURE and (source is None or not source.is_grey)

    @property
    def within(self) -> Area | None:
        return self._within if self.kind is Kind.PICTURE else None

    @property
    def values(self) -> Values:
        return self.values_of(self.spec.id)

    @property
    def automatic(self) -> tuple[str, ...]:
        return self.values.automatic

    @property
    def values_problem(self) -> str:
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
        if self.refused is not None:
            raise self.refused
        block = self._wished.block if self.takes_block(place) else None
        return replace(self._wished, device=place.device, level=place.level, block=block)

    def takes_block(self, place: RungPlace) -> bool:
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
        """Return the step of another filter as if it were chosen, estimates as `ESTIMATE`."""
        spec = filters.get(filter_id)
        values = self._with_noise(spec)
        if values.problem is not None:
            raise values.problem
        numbers = {**values.numbers, **dict.fromkeys(values.automatic, ESTIMATE)}
        return Step.create(filter_id, numbers, border=self._border_for(spec), grey=self.grey)

    def _border_for(self, spec: FilterSpec) -> Border:
        return self._wished_border if self._wished_border in spec.borders else spec.borders[0]

    # --- writing ---

    @contextlib.contextmanager
    def _settling(self, *fields: str) -> Iterator[None]:
        """Note that settings change in this block, and check them all at its end."""
        with self.changing(*fields):
            yield
            self._settle()

    def set_filter(self, filter_id: str) -> None:
        if filter_id in _offered(self.kind) and filter_id != self.filter_id:
            with self._settling(FILTER):
                self.filter_id = filter_id
                self._values[self.spec.id] = self._with_noise(self.spec)

    def _put(self, filter_id: str, values: Values) -> None:
        """Take the values of a filter, and note a kind of noise that is chosen by them."""
        noise = filters.get(filter_id).noise
        if noise is not None:
            chosen = values.numbers.get(noise.parameter)
            if chosen != self.values_of(filter_id).numbers.get(noise.parameter):
                self._noises[self.kind] = chosen
        self._values[filter_id] = values

    def _with_noise(self, spec: FilterSpec) -> Values:
        """Return values with the noise that was chosen for another denoiser: that of the data."""
        values, chosen = self.values_of(spec.id), self._noises.get(self.kind)
        if spec.noise is not None and chosen is not None:
            name = spec.noise.parameter
            with contextlib.suppress(InvalidParameter):
                numbers = {**values.numbers, name: spec.parameter(name).validate(chosen)}
                return replace(values, numbers=numbers)
        return values

    def set_in_3d(self, in_3d: bool) -> None:
        """Let masks go through the slices of volumes, or stay in them; common values are kept."""
        if in_3d == self._wishes_3d:
            return
        with self._settling(FILTER):
            before = self.values
            self._wishes_3d = in_3d
            numbers = dict(self.values.numbers)
            for name in numbers.keys() & before.numbers.keys():
                with contextlib.suppress(InvalidParameter):
                    numbers[name] = self.spec.parameter(name).validate(before.numbers[name])
            self._values[self.spec.id] = Values(numbers, self.values.automatic)

    def set_availability(self, availability: Mapping[str, Availability]) -> None:
        """Offer the devices that can be used; one that is not named is still looked for."""
        with self._settling(PLACES):
            self._availability = dict(availability)

    def edit(self, values: Values, filter_id: str = "") -> None:
        """Take the values that stand in the form of a filter; by default, of the one in front."""
        filter_id = filter_id or self.spec.id
        if not self.values_of(filter_id).same_as(values):
            with self._settling():
                self._put(filter_id, values)

    def set_values(self, filter_id: str, numbers: Mapping[str, Any]) -> None:
        with self._settling(VALUES):
            old = self.values_of(filter_id)
            automatic = tuple(name for name in old.automatic if name not in numbers)
            self._put(filter_id, Values({**old.numbers, **numbers}, automatic))

    def set_estimates(self, filter_id: str, numbers: Mapping[str, float]) -> None:
        """Set numbers that were estimated; those that every run estimates stay so."""
        with self._settling(VALUES):
            old = self.values_of(filter_id)
            self._values[filter_id] = replace(old, numbers={**old.numbers, **numbers})

    def show_estimates(self, request: Request) -> None:
        """Set the numbers that a run estimated, if it had the settings of the form."""
        step, names = request.step, self.automatic
        if step.filter.id == self.spec.id and names == step.estimates:
            self.set_estimates(step.filter.id, {name: step.parameters[name] for name in names})

    def reset(self, numbers: Mapping[str, Any] | None = None) -> None:
        """Take the usual values but for `numbers`; the last estimate stays until the next one."""
        spec, old, given = self.spec, self.values, dict(numbers or {})
        automatic = {each.name for each in spec.parameters if each.is_estimated} - given.keys()
        last = {name: old.numbers[name] for name in automatic & {*old.automatic}}
        values = Values({**spec.defaults(), **last, **given}, _in_order(spec, automatic))
        if not old.same_as(values):
            with self._settling(VALUES):
                self._put(spec.id, values)
                if spec.noise is not None and spec.noise.parameter not in given:
                    self._noises.pop(self.kind, None)

    def set_border(self, border: Border) -> None:
        with self._settling(OPTIONS):
            self._wished_border = border

    def set_grey(self, grey: bool) -> None:
        with self._settling(OPTIONS):
            self.wishes_grey = grey

    def offer_region(self, name: str, area: Area | None) -> None:
        """Offer a region to filter in, or none; the filter follows one that it is limited to."""
        with self._settling(REGION):
            self.region = name, area
            if self._within is not None and area is not None:
                self._within = area

    def limit(self, limited: bool) -> None:
        """Filter only in the region that is offered, or everywhere."""
        with self._settling(REGION):
            self._within = self.region[1] if limited else None

    def choose_place(self, place: RungPlace) -> None:
        self.set_options(replace(self._wished, device=place.device, level=place.level))

    def set_options(self, wished: RunOptions, refused: InvalidParameter | None = None) -> None:
        with self._settling(OPTIONS):
            self._wished, self.refused = wished, refused

    def show(self, settings: RunSettings) -> None:
        """Take the settings of a run, as far as they are offered now."""
        step, options = settings.step, settings.options
        filter_id = step.filter.base_id
        if filter_id not in _offered(self.kind):
            return
        with self._settling(VALUES, OPTIONS, REGION):
            if filter_id != self.filter_id:
                self.set_filter(filter_id)
            if self.offers_3d:
                self.set_in_3d(step.filter.is_in_3d)
            self._put(self.spec.id, Values(step.parameters, step.estimates))
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
                self._within = step.within
                if self.has_colours or step.grey:  # where it cannot be chosen, the wish stays
                    self.wishes_grey = step.grey

    @property
    def _wished_place(self) -> RungPlace:
        return RungPlace(self._wished.device, self._wished.level)

    def _settle(self) -> None:
        """Check everything once, and note the changes."""
        before, offered = self.settings, (self.rungs, self.place)
        problem, self.problem = self.problem, None
        if self._rungs_of != (self.spec.id, self._availability):
            self._rungs_of = self.spec.id, self._availability
            self.rungs = rungs(self.spec, self.backends, self._availability)
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
                self.spec.id,
                values.numbers,
                border=self.border,
                grey=self.grey,
                within=self.within,
            )
        except InvalidParameter as error:
            self._values_problem = error
            raise
        step = replace(step, estimates=values.automatic) if values.automatic else step
        return RunSettings(step, self.options_at(self.place))

    # --- from one start of the program to the next ---

    def texts(self) -> dict[str, dict[str, str]]:
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
            "grey": "on" if self.wishes_grey else "off",
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
        self.wishes_grey = texts.get("grey") == "on"
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
    return [spec.id for specs in by_category(kind).values() for spec in specs]


def _in_order(spec: FilterSpec, names: set[str]) -> tuple[str, ...]:
    return tuple(each.name for each in spec.parameters if each.name in names)


def _number(text: str, least: int, most: int) -> int:
    """Return the number that was remembered, within its bounds, or else the least one."""
    short = text.isdecimal() and len(text) <= _MOST_DIGITS
    return min(max(int(text), least), most) if short else least
