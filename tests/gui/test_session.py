"""The session: the settings as one object without Qt, alone and under random actions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from kernelscope.backends.cpu import CpuBackend
from kernelscope.base.errors import InvalidParameter
from kernelscope.engine.area import Area
from kernelscope.engine.backend import Availability
from kernelscope.engine.options import Device, RunOptions
from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.engine.run import execute
from kernelscope.engine.step import ESTIMATE, Step
from kernelscope.gui.model.history import History, Moment
from kernelscope.gui.model.run_settings import RunSettings
from kernelscope.gui.model.rungs import AUTO, RungPlace
from kernelscope.gui.session.session import (
    FILTER,
    MIB,
    PLACES,
    SETTINGS,
    Session,
    Values,
)
from kernelscope.gui.session.subject import Fields, Observed
from kernelscope.images.image import Image
from kernelscope.schema.borders import Border
from kernelscope.schema.samples import Kind
from tests.gui.helpers import FakeCpu, FakeGpu

GPU = {"gpu": Availability(True, "A card"), "cpu": Availability(True, "This CPU")}


def made(**texts: dict[str, str]) -> Session:
    """Return a session on a computer with a GPU, with the texts of an earlier one by group."""
    groups = {name.replace("__", "/"): group for name, group in texts.items()}
    backends: Any = {"gpu": FakeGpu(GPU["gpu"]), "cpu": FakeCpu()}
    return Session(backends, lambda group: groups.get(group, {}))


# --- followers ---


def test_a_change_is_told_once_at_its_end_and_once_later() -> None:
    observed, turns = Observed(), []
    now: list[Fields] = []
    later: list[Fields] = []
    observed.schedule = lambda: turns.append(1)
    observed.follow(now.append)
    observed.follow_later(later.append)
    with observed.changing("a"):
        with observed.changing("b"):
            pass
        assert not now
    assert now == [{"a", "b"}]
    with observed.changing("c"):
        pass
    assert (now, later) == ([{"a", "b"}, {"c"}], [])
    assert turns
    observed.call_later()
    observed.call_later()
    assert later == [{"a", "b", "c"}]


def test_a_follower_may_change_something_itself() -> None:
    observed = Observed()
    told: list[Fields] = []

    def round_off(fields: Fields) -> None:
        if "value" in fields:
            with observed.changing("rounded"):
                pass

    observed.follow(round_off)
    observed.follow(told.append)
    with observed.changing("value"):
        pass
    assert told == [{"value"}, {"rounded"}]


def test_nothing_is_told_where_nothing_changes() -> None:
    session = made()
    told: list[Fields] = []
    session.follow(told.append)
    session.set_filter(session.filter_id)
    session.set_filter("no such filter")
    session.edit(session.values)
    session.set_kind(Kind.PICTURE)
    assert not told
    session.set_filter("mean")
    assert len(told) == 1
    assert told[0] >= {FILTER, SETTINGS}


# --- settings ---


def test_values_stay_with_each_filter() -> None:
    session = made()
    session.set_values("median", {"size": 7})
    session.set_filter("mean")
    session.set_filter("median")
    assert session.require().step.parameters["size"] == 7
    session.reset()
    assert session.require().step == Step.of_numbers("median")


def test_a_wish_waits_for_a_filter_and_a_computer_that_offer_it() -> None:
    session = made()
    session.set_filter("median")
    session.set_border(Border.VALID)
    session.choose_place(RungPlace(Device.GPU, "shared"))
    assert session.place == AUTO, "no card has been found yet"
    session.set_filter("negative")
    assert session.border is not Border.VALID
    session.show(session.require())  # as Undo does
    session.set_filter("median")
    assert session.require().step.border is Border.VALID
    session.set_availability(GPU)
    assert session.place.device is Device.GPU


def test_what_is_being_typed_refuses_a_run_and_keeps_the_numbers() -> None:
    session = made()
    problem = InvalidParameter("“1.” is no number.", "Type another.")
    session.edit(Values(session.values.numbers, (), problem))
    assert session.settings is None
    with pytest.raises(InvalidParameter, match="is no number"):
        session.require()
    with pytest.raises(InvalidParameter):
        session.step_of("median")
    session.edit(Values(session.values.numbers))
    session.set_options(RunOptions(repeat=3), problem)
    assert session.settings is None
    assert not session.values_problem, "the parameters are valid"
    session.set_options(RunOptions(repeat=3))
    assert session.require().options.repeat == 3


def test_shown_settings_are_those_of_the_next_run() -> None:
    session = made()
    area = Area.parse("rectangle 1,1 5,5")
    image = Image.from_array(np.zeros((8, 9), np.uint8), "a")
    request = Request.create(
        image, "mean", {"size": 5}, within=area, repeat=4, memory_limit=64 * MIB
    )
    session.show(RunSettings.of(request))
    assert session.require() == RunSettings.of(request)
    assert session.require().made(request)
    assert session.within == area
    session.set_kind(Kind.VOLUME)
    assert session.require().step.within is None, "volumes are filtered as a whole"


def test_settings_survive_as_texts() -> None:
    session = made()
    session.set_filter("nlm")
    session.set_values("nlm", {"filter_sigma": 0.03})
    session.set_border(Border.WRAP)
    session.set_grey(True)
    session.set_options(RunOptions(Device.CPU, "serial", 5, 32 * MIB, block=(16, 8)))
    session.offer_region("R1", Area.parse("rectangle 1,1 5,5"))
    session.limit(True)
    texts = session.texts()
    again = Session(session._backends, lambda group: texts.get(group, {}), texts[""]["filter"])
    step, options = again.require().step, again.require().options
    assert (step.filter.id, step.parameters["filter_sigma"]) == ("nlm", 0.03)
    assert (step.border, step.grey, step.within) == (Border.WRAP, True, None)
    assert options == RunOptions(Device.CPU, "serial", 5, 32 * MIB)
    assert again.wished.block == (16, 8), "for a place that takes one"


def test_damaged_texts_are_left_out() -> None:
    run = {"device": "abacus", "border": "?", "repeat": "9" * 30, "memoryLimit": "-1", "block": "x"}
    session = made(run=run, filters__median={"size": "four", "gone": "1"})
    assert session.require() == RunSettings(Step.of_numbers("median"), RunOptions())


def test_an_estimate_is_left_open_until_a_number_is_set() -> None:
    session = made()
    assert session.step_of("nlm").parameters["filter_sigma"] == ESTIMATE
    session.set_filter("nlm")
    session.set_estimates("nlm", {"filter_sigma": 0.07})
    assert session.require().step.parameters["filter_sigma"] == 0.07
    assert session.require().open_step.estimates == session.automatic != ()
    session.set_values("nlm", {"filter_sigma": 0.05})
    assert session.automatic == ("sigma", "patch")


def test_places_are_told_when_a_card_is_found() -> None:
    session, told = made(), []
    session.follow(told.append)
    session.set_availability(GPU)
    assert PLACES in told[0]
    usable = {rung.place.device for rung in session.rungs if not rung.obstacle}
    assert Device.GPU in usable


# --- random actions ---

FILTERS = ("median", "mean", "negative")
SIZES = st.sampled_from([3, 5, 7])
AREA = Area.parse("rectangle 1,1 6,5")


def pictures() -> list[Image]:
    random = np.random.default_rng(5)
    grey = random.integers(0, 256, (8, 9), np.uint8)
    return [
        Image.from_array(grey, "grey"),
        Image.from_array(random.integers(0, 256, (7, 8, 3), np.uint8), "colours"),
    ]


class Actions(RuleBasedStateMachine):
    """A session, the history of a picture, and the output that Live keeps up to date."""

    backend: CpuBackend

    def compute(self, request: Request) -> Result:
        return execute(request, {"cpu": self.backend})

    @initialize()
    def start(self) -> None:
        self.session = Session({"cpu": self.backend})
        self.session.set_availability({"cpu": Availability(True, "This CPU")})
        self.session.call_later()  # nobody follows yet
        self.history: History[Image, Image] = History()
        self.history.form = lambda: self.session.settings
        self.pictures = pictures()
        self.due = False
        self.told: list[Fields] = []
        self.later: set[str] = set()
        self.noted: set[str] = set()
        self.tasks: list[Request] = []
        self.answers: list[Request] = []
        self.session.schedule = self._schedule
        self.session.follow(self._on_change)
        self.session.follow_later(lambda fields: self.later.update(fields))
        self.open(0)

    def _schedule(self) -> None:
        self.due = True

    def _on_change(self, fields: Fields) -> None:
        self.noted |= fields

    # --- what a user does ---

    @rule(number=st.integers(0, 1))
    def open(self, number: int) -> None:
        image = self.pictures[number]
        self.history.push(Moment(image, f"Open {image.title}"))

    @rule(filter_id=st.sampled_from([*FILTERS, "no such filter"]))
    def choose_filter(self, filter_id: str) -> None:
        before = self.session.filter_id
        self.session.set_filter(filter_id)
        assert self.session.filter_id == (filter_id if filter_id in FILTERS else before)

    @rule(size=SIZES)
    def move_slider(self, size: int) -> None:
        if "size" in self.session.values.numbers:
            self.session.edit(Values({**self.session.values.numbers, "size": size}))
            assert self.session.values.numbers["size"] == size

    @rule(size=SIZES, filter_id=st.sampled_from(["median", "mean"]))
    def adopt_from_the_sheet(self, size: int, filter_id: str) -> None:
        self.session.set_values(filter_id, {"size": size})

    @rule()
    def type_nonsense(self) -> None:
        problem = InvalidParameter("“x” is no number.", "Type another.")
        self.session.edit(Values(self.session.values.numbers, (), problem))
        assert self.session.settings is None

    @rule()
    def type_a_size_out_of_range(self) -> None:
        if "size" in self.session.values.numbers:
            self.session.edit(Values({**self.session.values.numbers, "size": 4}))
            assert "odd" in self.session.values_problem or self.session.values_problem

    @rule()
    def reset(self) -> None:
        self.session.reset()
        assert not self.session.values_problem

    @rule(border=st.sampled_from(list(Border)))
    def choose_border(self, border: Border) -> None:
        self.session.set_border(border)
        offered = self.session.spec.borders
        assert self.session.border is (border if border in offered else offered[0])

    @rule(grey=st.booleans())
    def convert_to_grey(self, grey: bool) -> None:
        self.session.set_grey(grey)

    @rule(moved=st.integers(0, 2))
    def draw_a_region(self, moved: int) -> None:
        self.session.offer_region("R1", AREA.moved(0, moved))

    @rule()
    def choose_no_region(self) -> None:
        before = self.session.within
        self.session.offer_region("", None)
        assert self.session.within == before, "the filter stays where it was"

    @rule(limited=st.booleans())
    def limit_to_the_region(self, limited: bool) -> None:
        self.session.limit(limited)
        assert self.session.within == (self.session.region[1] if limited else None)

    @rule(level=st.sampled_from(["serial", "parallel"]))
    def choose_level(self, level: str) -> None:
        self.session.choose_place(RungPlace(Device.CPU, level))
        assert self.session.place == RungPlace(Device.CPU, level)

    @rule()
    def choose_auto(self) -> None:
        self.session.choose_place(AUTO)
        assert self.session.place == AUTO

    @rule()
    def wish_for_a_card(self) -> None:
        self.session.choose_place(RungPlace(Device.GPU, "shared"))
        assert self.session.place == AUTO

    @rule(repeat=st.integers(1, 3), limit=st.sampled_from([None, MIB]))
    def set_options(self, repeat: int, limit: int | None) -> None:
        self.session.set_options(replace(self.session.wished, repeat=repeat, memory_limit=limit))

    @rule()
    def type_half_an_option(self) -> None:
        problem = InvalidParameter("“1.” is no such number.", "Use 1 to 999.")
        self.session.set_options(self.session.wished, problem)
        assert self.session.settings is None

    @rule()
    def look_at_a_volume(self) -> None:
        """Show the other page and return: each kind of data has its filter."""
        before = self.session.filter_id, self.session.settings
        self.session.set_kind(Kind.VOLUME)
        assert not self.session.grey
        assert self.session.within is None
        self.session.set_kind(Kind.PICTURE)
        assert (self.session.filter_id, self.session.settings) == before

    @rule()
    def find_devices_again(self) -> None:
        before = self.session.settings
        self.session.set_availability({"cpu": Availability(True, "This CPU")})
        assert self.session.settings == before

    @rule()
    def start_again(self) -> None:
        """Open a session with the texts of this one."""
        texts = self.session.texts()
        again = Session(
            {"cpu": self.backend}, lambda group: texts.get(group, {}), texts[""]["filter"]
        )
        again.set_availability({"cpu": Availability(True, "This CPU")})
        if self.session.settings is not None:
            step = replace(self.session.settings.step, within=None)
            assert again.settings == replace(self.session.settings, step=step)

    # --- what the window does ---

    @rule(as_step=st.booleans())
    def run(self, as_step: bool) -> None:
        """Compute the settings, if they are valid for the picture."""
        moment = self.history.current
        if self.session.settings is None or moment is None:
            return
        try:
            request = self.session.settings.request(moment.source)
        except InvalidParameter:
            return
        self.tasks.append(request)
        result = self.compute(request)
        self.answers.append(result.request)
        self.history.show(result, RunSettings.of(request), as_step=as_step)
        self._check_shown()

    def _check_shown(self) -> None:
        """Compare the output with that of the settings, written out one by one."""
        session, moment = self.session, self.history.current
        assert moment is not None
        assert moment.result is not None
        expected = Request.create(
            moment.source,
            session.filter_id,
            session.values.numbers,
            border=session.border,
            grey=session.grey,
            within=session.within,
            device=Device.CPU,
            level="serial",
        )
        assert (moment.result.image.pixels == self.compute(expected).image.pixels).all()
        assert session.require().made(moment.result.request)

    @rule()
    def use_the_output(self) -> None:
        moment = self.history.current
        if moment is not None and moment.result is not None:
            self.history.push(Moment(moment.result.image, "Use"))

    @precondition(lambda self: self.history.undo_name)
    @rule()
    def undo(self) -> None:
        before, place = self.history.state
        self.history.undo()
        self._return()
        assert self.history.state[0][: place - 1] == before[: place - 1]

    @precondition(lambda self: self.history.redo_name)
    @rule()
    def redo(self) -> None:
        self.history.redo()
        self._return()

    @precondition(lambda self: self.history.undo_name)
    @rule()
    def undo_and_redo(self) -> None:
        """Return to the same moment, with its output and its settings."""
        self.history.undo()
        self._return()
        self.history.redo()
        moment = self._return()
        self.history.undo()
        self._return()
        self.history.redo()
        again = self._return()
        assert again.source is moment.source
        assert again.result is moment.result
        # One without a result takes the settings that stand in the form when it is left.
        assert moment.result is None or again.form == moment.form

    def _return(self) -> Moment[Image, Image]:
        moment = self.history.current
        assert moment is not None
        if moment.form is not None:
            self.session.show(moment.form)
            assert self.session.settings == moment.form
            if moment.result is not None:
                self._check_shown()
        return moment

    @rule()
    def turn(self) -> None:
        """Let a turn of the event loop end."""
        self.due = False
        self.session.call_later()
        assert self.later == self.noted, "each change is told later as well, and only once"
        self.later.clear()
        self.noted.clear()
        self.session.call_later()
        assert not self.later

    # --- what always holds ---

    @invariant()
    def settings_are_valid_or_there_is_a_reason(self) -> None:
        session = self.session
        assert (session.settings is None) == (session.problem is not None)
        if session.settings is not None:
            step = session.settings.step
            assert step.filter.id == session.filter_id
            assert (step.border, step.grey, step.within) == (
                session.border,
                session.grey,
                session.within,
            )

    @invariant()
    def changes_are_due(self) -> None:
        assert self.due or self.noted == self.later

    @invariant()
    def every_task_has_one_answer(self) -> None:
        assert [each.id for each in self.tasks] == [each.id for each in self.answers]
        assert len({each.id for each in self.tasks}) == len(self.tasks)


EXAMPLES = [20, pytest.param(2000, marks=pytest.mark.exhaustive)]


@pytest.mark.parametrize("examples", EXAMPLES)
def test_the_output_is_that_of_the_settings_whatever_is_done(examples: int) -> None:
    Actions.backend = CpuBackend(threads=1)
    try:
        run_state_machine_as_test(  # type: ignore[no-untyped-call]
            Actions,
            settings=settings(
                max_examples=examples,
                stateful_step_count=30,
                deadline=None,
                suppress_health_check=list(HealthCheck),
                database=None,
            ),
        )
    finally:
        Actions.backend.close()
