"""The session: the settings as one object without Qt, alone and under random actions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace
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
from kernelscope.engine.region import Region
from kernelscope.engine.request import Request, RunSettings, alike
from kernelscope.engine.result import Result
from kernelscope.engine.slices import picture_of
from kernelscope.engine.step import Step
from kernelscope.engine.steps import execute_all
from kernelscope.engine.timing import Stage
from kernelscope.engine.worker import Event, Failed, Finished, Job, Stopped
from kernelscope.gui.docks.headline import FreshnessBadge
from kernelscope.gui.model import freshness
from kernelscope.gui.model.comparison import following
from kernelscope.gui.model.display import ColourMap, Display
from kernelscope.gui.model.freshness import (
    LOOKING,
    MOVING,
    RESTING,
    Freshness,
    Pace,
    is_worthwhile,
    pixels_of,
)
from kernelscope.gui.model.history import History, Moment, Reference, ReferenceOrigin
from kernelscope.gui.model.ladder import AUTO, RungPlace
from kernelscope.gui.model.pipeline import Pipeline, kept_steps
from kernelscope.gui.session.canvas_view import SEEN
from kernelscope.gui.session.session import (
    FILTER,
    MIB,
    PLACES,
    SETTINGS,
    Session,
    Values,
)
from kernelscope.gui.session.subject import MOMENT, REFERENCED, RESULT, Fields, Observed
from kernelscope.gui.window.live import Live
from kernelscope.gui.window.runner import Runner
from kernelscope.gui.work import tasks
from kernelscope.gui.work.tasks import Priority, Task, Tasks
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume
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


def test_a_follower_that_fails_does_not_silence_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    observed, turns = Observed(), []
    now: list[Fields] = []
    later: list[Fields] = []
    observed.schedule = lambda: turns.append(1)

    def fail(fields: Fields) -> None:
        if "bad" in fields:
            raise ValueError("a bug")

    for follow, told in ((observed.follow, now), (observed.follow_later, later)):
        follow(fail)
        follow(told.append)
    with pytest.raises(ValueError, match="a bug"):
        observed.note("bad")
    assert (now, turns) == ([{"bad"}], [1])
    with pytest.raises(ValueError, match="a bug"):
        observed.call_later()
    assert later == [{"bad"}]
    observed.note("good")
    observed.call_later()
    assert now == later == [{"bad"}, {"good"}]
    observed.follow(fail)
    with pytest.raises(ValueError, match="a bug"):
        observed.note("bad")
    assert [str(each.exc_info[1]) for each in caplog.records if each.exc_info] == ["a bug"]


def test_failures_of_subject_and_session_keep_no_follower_from_a_change(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The first one is raised as it is, so that an error of the user has its message."""
    session = made()
    told: list[Fields] = []
    failing = True

    def fail(fields: Fields) -> None:
        if failing:
            raise InvalidParameter("no such size", "Choose another one.")

    def fail_too(fields: Fields) -> None:
        if failing:
            raise ValueError("a bug")

    session.pictures.follow(fail)
    for follower in (fail_too, told.append):
        session.follow(follower)
    with pytest.raises(InvalidParameter, match="no such size"):
        session.pictures.note(RESULT)
    assert told == [{RESULT}]
    assert [str(each.exc_info[1]) for each in caplog.records if each.exc_info] == ["a bug"]
    failing = False
    session.set_filter("mean")
    assert len(told) == 2


def test_nothing_is_told_where_nothing_changes() -> None:
    session = made()
    told: list[Fields] = []
    session.follow(told.append)
    session.set_filter(session.filter_id)
    session.set_filter("no such filter")
    session.edit(session.values)
    session.bring_to_front(session.pictures)
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


def test_the_kind_of_noise_goes_with_the_data_to_another_denoiser() -> None:
    session = made()
    session.set_filter("nlm")
    session.set_values("nlm", {"noise": "camera", "strength": 150})
    strength = session.values_of("sliding_dct").numbers["strength"]
    for filter_id in ("median", "nlm", "sliding_dct"):
        session.set_filter(filter_id)
    assert session.values.numbers["noise"] == "camera"
    assert session.values.numbers["strength"] == strength
    session.set_values("sliding_dct", {"noise": "auto"})
    session.set_filter("nlm")
    assert session.values.numbers["noise"] == "auto"


def test_a_kind_of_noise_that_was_left_as_it_is_replaces_none() -> None:
    """The next denoiser has a kind of an earlier session, this one its default, or *Defaults*."""
    session = made(filters__sliding_dct={"noise": "camera"})
    session.set_filter("nlm")
    session.set_filter("sliding_dct")
    assert session.values.numbers["noise"] == "camera"
    session.set_filter("nlm")
    assert session.values.numbers["noise"] == "auto"
    session.edit(replace(session.values, numbers={**session.values.numbers, "noise": "white"}))
    session.reset()
    session.set_filter("sliding_dct")
    assert session.values.numbers["noise"] == "camera"


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
    assert "filters/median" not in session.texts()
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
    session.bring_to_front(session.volumes)
    assert session.require().step.within is None, "volumes are filtered as a whole"


def test_a_filter_follows_the_region_only_while_it_is_limited_to_it() -> None:
    session, one, two = made(), Area.parse("rectangle 1,1 5,5"), Area.parse("rectangle 2,2 6,6")
    session.offer_region("R1", one)
    assert session.within is None
    session.limit(True)
    session.offer_region("R2", two)
    session.offer_region("", None)
    assert session.within == two


def test_a_limit_of_memory_is_shown_in_whole_mebibytes() -> None:
    session = made()
    step = Step.of_numbers("median")
    session.show(RunSettings(step, RunOptions(memory_limit=3 * MIB + 5)))
    assert session.wished.memory_limit == 3 * MIB
    session.show(RunSettings(step, RunOptions(memory_limit=5)))
    assert session.wished.memory_limit is None


def test_values_differ_in_type_and_masks_unless_they_are_one_object() -> None:
    mask = ((0.0, 1.0), (2.0, 3.0))
    three = Values({"size": 3, "mask": mask})
    assert three.same_as(Values({"size": 3, "mask": mask}))
    for other in (
        Values({"size": 3.0, "mask": mask}),
        Values({"size": 5, "mask": mask}),
        Values({"size": 3}),
        Values(three.numbers, ("size",)),
        Values({"size": 3, "mask": (mask[0], (2.0, 3.0))}),
    ):
        assert not three.same_as(other)


def test_the_emulated_gpu_is_left_behind_where_the_kind_of_filter_changes() -> None:
    session = made()
    session.choose_place(RungPlace(Device.EMULATED, "shared"))
    session.set_filter("mean")
    assert session.wished.device is Device.EMULATED
    session.bring_to_front(session.volumes)
    assert (session.wished.device, session.wished.level) == (Device.AUTO, None)
    assert session.texts()[""]["filter"] == "mean", "the picture's is remembered"


def test_masks_stay_in_a_single_slice() -> None:
    session, seen = made(), []
    deep, flat = (Scan((Volume.from_array(np.zeros((depth, 4, 5), np.uint8)),)) for depth in (3, 1))
    session.volumes.open_volumes(deep)
    session.bring_to_front(session.volumes)
    session.set_filter("median")
    session.set_in_3d(True)
    assert session.settings.step.filter.is_in_3d
    session.follow(lambda fields: seen.append(FILTER in fields))
    session.volumes.open_volumes(flat)
    assert seen[-1]
    assert not session.offers_3d
    assert not session.is_deep
    assert not session.settings.step.filter.is_in_3d
    session.volumes.open_volumes(deep)
    assert session.offers_3d
    assert session.settings.step.filter.is_in_3d, "as it was chosen for volumes"


def test_volumes_of_a_microscope_get_no_filter_for_mri() -> None:
    for microscope in (False, True):
        session = made()
        volume = Volume.from_array(np.zeros((3, 4, 5), np.uint8), microscope=microscope)
        session.volumes.open_volumes(Scan((volume,)))
        session.bring_to_front(session.volumes)
        assert (session.filter_id == "median") is microscope


@pytest.mark.parametrize(
    ("kind", "filter_id", "why"),
    [
        (Kind.PICTURE, "mean", ""),
        (Kind.PICTURE, "laplace", "Laplace does not restore a picture"),
        (Kind.VOLUME, "mean", ""),
        (Kind.VOLUME, "laplace", "Laplace does not restore a volume"),
    ],
)
def test_pictures_and_volumes_are_evaluated_alike(kind: Kind, filter_id: str, why: str) -> None:
    session = made()
    output: Image | Scan
    if kind is Kind.PICTURE:
        picture, truth, output = (
            Image.from_array(np.full((4, 5), each, np.uint8)) for each in (90, 100, 97)
        )
        session.pictures.open_source(picture)
        session.pictures.set_reference(truth)
    else:
        volume, original, after = (
            Volume.from_array(np.full((3, 4, 5), each, np.uint8)) for each in (90, 100, 97)
        )
        output = Scan((after,))
        session.volumes.open_volumes(Scan((volume,)), [original])
        session.bring_to_front(session.volumes)
    session.set_filter(filter_id)
    subject = session.subject
    request = subject.request(session.require())
    subject.show_result(Result(request, output, "cpu", "parallel", ()))
    judged, histograms = subject.evaluation()()
    assert histograms.keys() == {"input", "output"}
    assert judged.before is not None
    assert judged.problem.startswith(why)
    assert bool(judged.problem) is bool(why)
    assert (judged.after is None) is bool(why)
    # The ratio of the differences, 10 and 3, whatever counts as white.
    gain = 20 * np.log10(10 / 3)
    assert why or judged.after.psnr - judged.before.psnr == pytest.approx(gain, abs=1e-4)


def test_the_first_reference_of_pictures_and_of_volumes_is_announced_once() -> None:
    session, announced = made(), []
    session.when({REFERENCED}, lambda: announced.append(session.kind))
    plain, noisy, first = (Volume.from_array(np.full((3, 4, 5), n, np.uint8)) for n in (9, 8, 7))
    session.volumes.open_volumes(Scan((first,)))
    assert not announced
    session.volumes.open_volumes(Scan((noisy,)), [plain])
    assert session.volumes.reference.image is plain
    assert len(announced) == 1
    session.volumes.push(session.volumes.moment)
    assert len(announced) == 1
    session.pictures.open_source(grey())
    moment = session.pictures.moment
    truth = Reference(grey(), ReferenceOrigin.NOISE)
    session.pictures.push(replace(moment, references={moment.source: truth}))
    assert len(announced) == 2


@pytest.mark.parametrize(
    ("title", "name"), [("scan.ome.tif", "scan-median"), ("a.b.png", "a.b-median")]
)
def test_a_result_is_saved_under_the_name_of_its_file(title: str, name: str) -> None:
    session = made()
    session.pictures.open_source(Image.from_array(np.zeros((4, 5), np.uint8), title))
    session.set_filter("median")
    request = session.subject.request(session.require())
    session.subject.show_result(Result(request, grey(), "cpu", "parallel", ()))
    saved = session.subject.output()
    assert saved is not None
    assert saved.name == name


@pytest.mark.parametrize(
    ("filters", "name"),
    [
        (("hot_pixels", "sliding_dct"), "raw16-hot_pixels-sliding_dct"),
        (("median", "mean", "sobel", "negative"), "raw16-4_steps"),
    ],
)
def test_the_name_of_a_file_has_all_steps(filters: tuple[str, ...], name: str) -> None:
    """It had the last one alone before the form, or the one that the form edits."""
    session = made()
    first = Image.from_array(np.zeros((4, 5), np.uint8), "raw16.tif")
    source = Image.from_array(np.ones((4, 5), np.uint8), "raw16.tif")
    before = Request.create(first, filters[0])
    session.pictures.push(Moment(source, "Use", steps=(before,)))
    then = tuple(RunSettings(Step.create(each)) for each in filters[2:])
    request = replace(Request.create(source, filters[1]), then=then)
    assert session.pictures.savable(request, False)(source).name == name


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32])
def test_slices_are_drawn_as_their_volume_is(dtype: type[np.generic]) -> None:
    session = made()
    voxels = np.arange(60).reshape(3, 4, 5).astype(dtype)
    session.volumes.open_volumes(Scan((Volume.from_array(voxels),)))
    session.bring_to_front(session.volumes)
    view = session.volumes.view
    part = session.volumes.part
    image = picture_of(part, 0, 1)
    view.displays.show_input(part, follows=False)
    view.choose(Display(20, 40, 0.5, ColourMap.VIRIDIS))
    display = session.subject.display_of(image)
    np.testing.assert_array_equal(
        display.steps(image.planes)[:, :, 0], view.display.steps(part.voxels[1])
    )
    assert (display.gamma, display.colour_map) == (0.5, ColourMap.VIRIDIS)


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
    again = Session(session.backends, lambda group: texts.get(group, {}), texts[""]["filter"])
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
    assert "filter_sigma" in session.step_of("nlm").estimates
    session.set_filter("nlm")
    session.set_estimates("nlm", {"filter_sigma": 0.07})
    assert session.require().step.parameters["filter_sigma"] == 0.07
    assert session.require().step.estimates == session.automatic != ()
    session.set_values("nlm", {"filter_sigma": 0.05})
    assert session.automatic == ("sigma", "patch")


def test_places_are_told_when_a_card_is_found() -> None:
    session, told = made(), []
    session.follow(told.append)
    session.set_availability(GPU)
    assert PLACES in told[0]
    usable = {rung.place.device for rung in session.rungs if not rung.obstacle}
    assert Device.GPU in usable


# --- what is shown ---


def grey(value: int = 7, dtype: str = "uint8") -> Image:
    return Image.from_array(np.full((8, 9), value, dtype), "grey")


def result_of(session: Session, image: Image) -> Result:
    request = session.require().request(image)
    return Result(request, grey(), "cpu", "parallel", ())


def test_work_is_told_where_it_begins_ends_or_compiles() -> None:
    session, told = made(), []
    session.pictures.follow(told.append)
    for at_work, compiling in ((True, False), (True, True), (True, True), (False, False)):
        session.pictures.note_work(at_work=at_work, compiling=compiling)
    assert len(told) == 3


@pytest.mark.parametrize("live", [False, True])
def test_only_live_results_of_other_settings_are_steps(live: bool) -> None:
    session, image = made(), grey()
    session.live = live
    session.pictures.open_source(image)
    for size in (3, 5):
        session.set_values("median", {"size": size})
        result = result_of(session, image)
        session.pictures.show_output(result, session.require())
    assert len(session.pictures.history.moments) == (2 if live else 1)
    assert session.pictures.result is result


def test_settings_wait_once_for_the_page_to_be_in_front() -> None:
    session = made()
    form = RunSettings(Step.of_numbers("mean"), RunOptions())
    volume = Volume.from_array(np.zeros((3, 4, 5), np.uint8))
    history: History[Scan, Volume] = History()
    history.push(Moment(Scan((volume,)), "Open"))
    session.volumes.show_history(history, form)
    assert session.volumes.take_due() == form
    assert session.volumes.take_due() is None


def test_only_values_of_whole_numbers_are_whole() -> None:
    session = made()
    view = session.pictures.view
    for dtype in ("uint8", "float32"):
        view.displays.show_input(grey(dtype=dtype), follows=False)
        assert view.is_whole == (dtype == "uint8")


def test_the_part_in_view_has_whole_pixels_and_the_reduction_all_of_its_squares(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = made()
    view, image = session.pictures.view, grey()
    session.pictures.open_source(image)
    view.seen = (0.7, 1.2, 3.4, 2.5)
    monkeypatch.setattr(view, "camera", SimpleNamespace(device_scale=0.4))
    request = session.require().request(image)
    assert session.pictures.visible_parts(request) == (Region(1, 0, 2, 4),)
    assert session.pictures.reduction() == 2


def test_levels_of_volumes_are_chosen_for_each_and_never_empty() -> None:
    view = made().volumes.view
    flat, other = (Volume.from_array(np.full((3, 4, 5), n, np.uint8)) for n in (7, 9))
    view.displays.show_input(flat, follows=False)
    view.show_full_range()
    full = view.display
    assert full is not None
    assert full.high > full.low
    view.displays.show_input(other, follows=False)
    view.choose(Display(75, 125))
    assert view.display == Display(75, 125)
    view.displays.show_input(flat, follows=False)
    assert view.display is full


def test_an_output_without_the_steps_after_it_is_not_current_and_is_shown_alone_again() -> None:
    session, image = made(), grey()
    pictures = session.pictures
    pictures.open_source(image)
    result, form = result_of(session, image), session.require()
    pictures.show_output(result, form)
    assert pictures.is_current(form)
    steps = tuple(RunSettings(Step.of_numbers(each)) for each in ("median", "mean"))
    pictures.history.amend(pipeline=Pipeline(steps, 0))
    assert not pictures.is_current(form)
    pictures.show_again(result, form)
    assert pictures.is_current(form)


def test_two_steps_are_in_grey_again_after_a_grey_picture() -> None:
    session = made()
    pictures = session.pictures
    first, last = (Image.from_array(np.full((9, 8, 3), n, np.uint8)) for n in range(2))
    pictures.open_source(first)
    session.set_grey(True)
    assert pictures.pipeline is not None
    pictures.history.amend(pipeline=pictures.pipeline.duplicated(0).selected(0))
    for image, is_converted in ((grey(), False), (last, True)):
        pictures.open_source(image)
        assert len(pictures.pipeline.steps) == 2
        assert session.require().step.grey is is_converted


def test_undo_passes_over_volumes_of_a_file_that_were_only_looked_at() -> None:
    """Its text named them as if they were steps, which took back no change."""
    session = made()
    volumes, history = session.volumes, session.volumes.history
    scans = [Scan((Volume.from_array(np.full((3, 4, 5), n, np.uint8)),)) for n in range(5)]

    def look(number: int) -> None:
        volumes.show_member(scans[number])
        volumes.note_moment()

    def run(size: int) -> None:
        session.set_values("median", {"size": size})
        request = volumes.request(session.require())
        volumes.show_output(
            Result(request, request.source, "cpu", "parallel", ()), session.require()
        )

    volumes.open_volumes(scans[0])
    volumes.note_moment()
    session.set_filter("median")
    run(3)
    for number in (1, 2):
        look(number)
    assert (history.undo_name, len(history.moments)) == ("", 2)
    run(3)
    run(5)
    look(3)
    look(4)
    assert (history.undo_name, len(history.moments)) == ("Median", 4)
    volumes.undo()
    assert (volumes.source, session.values.numbers["size"]) == (scans[2], 3)
    assert (history.undo_name, history.redo_name) == ("", "Median")
    volumes.redo()
    assert (volumes.source, session.values.numbers["size"]) == (scans[4], 5), "as it was left"
    assert history.redo_name == ""


def test_room_for_more_components() -> None:
    volumes = made().volumes
    room = volumes.room
    volumes.open_volumes(Scan((Volume.from_array(np.zeros((3, 4, 5), np.uint8)),)))
    assert volumes.room == room - 1


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


class Paused:
    """A worker whose runs end when the machine says so; the last work is the one that counts."""

    live_stage = ""

    def __init__(self, _: object, hear: Callable[[Event], None], *__: object, **___: object):
        self.hear, self.work, self.left = hear, list[Request | Job](), list[Request | Job]()

    def submit(self, work: Request | Job) -> None:
        self.cancel()
        self.work.append(work)

    def cancel(self, *, followed: bool = False) -> None:
        self.left += self.work
        self.work.clear()

    def close(self, _: float) -> None:
        self.cancel()


def _took(result: Result, seconds: float) -> Result:
    return replace(result, stages=(Stage("compute", seconds),))


class Now:
    """Background work that is done at once."""

    def start(self, _: str, work: Any, show: Any, failed: Any) -> None:
        try:
            answer = work()
        except InvalidParameter as error:
            failed(error)
        else:
            show(answer)

    def forget(self, _: str) -> None:
        pass


class NoBar:
    """Takes the place of the bar of progress."""

    def __getattr__(self, _: str) -> Callable[..., None]:
        return lambda *_, **__: None


def in_grey(pipeline: Pipeline, grey: bool) -> Pipeline:
    """Return steps of which the one in the form converts to greyscale, or does not."""
    step = replace(pipeline.present.step, grey=grey)
    return pipeline.edited(replace(pipeline.present, step=step))


class Actions(RuleBasedStateMachine):
    """The session with a picture, live runs and those that the user starts, without a window."""

    backend: CpuBackend

    def compute(self, request: Request) -> Result:
        return execute_all(request, {"cpu": self.backend})

    @initialize()
    def start(self) -> None:
        self.late: Counter[str] = Counter()
        """Runs one after the other that took too long, of each kind."""
        self.session = Session({"cpu": self.backend})
        self.session.set_availability({"cpu": Availability(True, "This CPU")})
        self.session.call_later()  # nobody follows yet
        self.subject = self.session.pictures
        self.pictures = pictures()
        self.due = False
        self.later: set[str] = set()
        self.noted: set[str] = set()
        self.session.schedule = self._schedule
        self.session.follow(self.noted.update)
        self.session.follow_later(lambda fields: self.later.update(fields))
        self.subject.when({MOMENT, RESULT}, self._draw)
        self.moments = 0
        self.errand: Task | None = None
        self.wrong: list[str] = []
        self.session.when({MOMENT}, self._count)
        stubs: Any = NoBar(), Now(), lambda _: None
        self.tasks = Tasks({})
        worker: Any = self.tasks._worker
        self.worker: Paused = worker
        self.begun: list[Task] = []
        self.ended: list[Task] = []
        self.listed: list[Result] = []
        self.tasks.began.connect(self.begun.append)
        self.tasks.ended.connect(self.ended.append)
        self.runner = Runner(self.tasks, self.session, *stubs)
        self.runner.finished.connect(lambda result, _: self.listed.append(result))
        self.failures: list[Exception] = []
        self.runner.failed.connect(self.failures.append)
        remembered: Any = SimpleNamespace(text=lambda *_: "on", set_text=lambda *_: None)
        self.live = Live(self.runner, self.session, stubs[1], remembered, FreshnessBadge())
        self.open(0)

    def teardown(self) -> None:
        self.live.close()
        self.tasks.close(0)

    def _schedule(self) -> None:
        self.due = True

    def _count(self) -> None:
        self.moments += 1
        self._give_up()

    def _draw(self) -> None:
        """Show the moment, as the page does; the input is seen as a whole at first."""
        subject = self.subject
        with subject.changing():
            if subject.is_behind:
                self.look(0)
            subject.note_moment()
            subject.note_output()

    # --- what a user does ---

    @rule(number=st.integers(0, 1))
    def open(self, number: int) -> None:
        image, before = self.pictures[number], self.subject.pipeline
        kept = None
        if before is not None and len(before.steps) > 1:
            before = before.reopened(self.subject.moment.steps)
            kept = kept_steps(in_grey(before, self.session.wishes_grey), image, 0)
        self.subject.open_source(image)
        assert self.subject.source is image
        assert not self.subject.is_behind
        if kept is not None:
            after = self.subject.pipeline
            assert after is not None
            grey = kept.pipeline.present.step.grey and not image.is_grey
            steps = [each.step for each in in_grey(kept.pipeline, grey).steps]
            assert [each.step for each in after.steps] == steps, "all of them, not only the last"

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
        self.session.offer_region(
            "R1", replace(AREA, corners=tuple((x, y + moved) for x, y in AREA.corners))
        )

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
        self.session.bring_to_front(self.session.volumes)
        assert not self.session.grey
        assert self.session.within is None
        self.session.bring_to_front(self.session.pictures)
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
            # Nothing is open yet, so that a wish for grey counts again.
            step = replace(self.session.settings.step, within=None, grey=self.session.wishes_grey)
            assert again.settings == replace(self.session.settings, step=step)

    @rule(left=st.integers(0, 4))
    def look(self, left: int) -> None:
        """Move the picture, so that a part of it is in view."""
        source = self.subject.source
        if source is not None:
            with self.subject.view.changing(SEEN):
                self.subject.view.seen = left, 0, source.width, source.height - left

    @rule()
    def switch_live(self) -> None:
        self.live.toggle()

    # --- runs ---

    @rule()
    def press_run(self) -> None:
        self.runner.run()
        assert self.runner.busy == (self.session.settings is not None) or self.failures

    @rule()
    def press_escape(self) -> None:
        self.runner.cancel()
        assert not self.runner.busy

    @rule()
    def fetch(self) -> None:
        """Compute the input of a later step, as the list of steps does."""
        request, moments = self.subject.wanted(), self.moments

        def then(_: Result) -> None:  # Qt keeps exceptions of slots to itself
            if moments != self.moments:
                self.wrong.append("another moment ends an errand without an answer")

        if request is not None:
            self._give_up()
            self.errand = self.tasks.submit(replace(request, live=True), Priority.ERRAND)
            self.errand.finished.connect(then)

    def _give_up(self) -> None:
        if self.errand is not None:
            self.errand.mute()
            self.errand.cancel()

    @rule(compiled=st.booleans())
    def answer(self, compiled: bool = True, seconds: float = 1e-5) -> None:
        """Let the run in progress end, whose steps took this long each."""
        if self.worker.work:
            work = self.worker.work.pop()
            assert isinstance(work, Request)
            wanted, result = self.subject.wanted(), self.compute(work)
            before = self.subject.part_shown(work)
            result = replace(result, parts=tuple(_took(each, seconds) for each in result.parts))
            result = replace(_took(result, seconds), uncompiled=work.live and not compiled)
            self.late[work.cost_key] += 1
            if seconds <= MOVING:
                del self.late[work.cost_key]
            self.tasks._deliver(Finished(work, result))
            if work.region is not None and wanted is not None and alike(work, wanted):
                if not is_worthwhile(before, work.region, work.region):
                    assert self.subject.part_shown(work) == before, "no less than there was"
                else:
                    assert self.subject.shown is result.request, "the part that is looked at"

    @precondition(lambda self: self.worker.work and self.late[self.worker.work[0].cost_key] < 2)
    @rule(compiled=st.booleans(), seconds=st.sampled_from([2 * MOVING, RESTING / 2, RESTING]))
    def answer_late(self, compiled: bool, seconds: float) -> None:
        """Let the run in progress end after it has waited for another program."""
        self.answer(compiled, seconds)

    @rule()
    def finish_compiling(self) -> None:
        self.live.use_compiled()

    @rule()
    def fail(self) -> None:
        if self.worker.work:
            error = InvalidParameter("It cannot be computed.", "Choose other settings.")
            self.tasks._deliver(Failed(self.worker.work.pop(), error))

    @rule()
    def answer_too_late(self) -> None:
        """Runs that were replaced end as well, which nobody waits for."""
        before = self.subject.result, self.subject.shown, len(self.listed)
        for work in self.worker.left:
            assert isinstance(work, Request)
            self.tasks._deliver(Finished(work, self.compute(work)))
            self.tasks._deliver(Stopped(work))
        self.worker.left.clear()
        assert before == (self.subject.result, self.subject.shown, len(self.listed))

    @rule()
    def rest(self) -> None:
        """Leave the settings alone until everything is computed that will be."""
        self.live._on_rest()
        for _ in range(9):
            self.answer()
        assert not self.worker.work
        wanted, failed = self.subject.wanted(), self.live._failed
        if self.session.live and wanted and not (failed and alike(failed[0], wanted)):
            assert self.session.freshness is Freshness.EXACT
            self._check_settings()

    @rule(
        line=st.sampled_from([-math.inf, 2.0, 4.0]),
        seconds=st.sampled_from([2 * RESTING, LOOKING, 4 * LOOKING]),
    )
    def rest_while_filters_are_slow(self, line: float, seconds: float) -> None:
        """Leave the settings alone where each step takes this long for the picture: runs end."""
        wanted, kept = self.subject.wanted(), (self.live.pace, self.late)
        if wanted is None:
            return
        self.subject.view.output_from = line, -math.inf
        self.live.pace, self.late = Pace(), Counter()
        pace = seconds / pixels_of(wanted)
        self.live._on_rest()
        for _ in range(9):
            works = [each for each in self.worker.work if isinstance(each, Request)]
            self.answer(seconds=pace * sum(map(pixels_of, works)))
        assert not self.worker.work
        self.live.pace, self.late = kept

    def _check_settings(self) -> None:
        """Compare the output with that of the settings, written out one by one."""
        session, result = self.session, self.subject.result
        assert result is not None
        expected = Request.create(
            self.subject.moment.source,
            session.filter_id,
            session.values.numbers,
            border=session.border,
            grey=session.grey,
            within=session.within,
            device=Device.CPU,
            level="serial",
        )
        expected = replace(expected, then=self.subject.history.then)
        assert (result.image.pixels == self.compute(expected).image.pixels).all()
        assert session.require().made(result.request)

    # --- steps ---

    @rule()
    def use_the_output(self) -> None:
        moment = self.subject.moment
        if moment.result is not None:
            self.subject.push(following(moment))
            assert self.subject.source is moment.result.output

    @rule()
    def copy_the_step(self) -> None:
        """Apply the filter of the form once more, as a card after it."""
        pipeline, moment = self.subject.pipeline, self.subject.moment
        if pipeline is None or self.session.settings is None or len(pipeline.steps) > 2:
            return
        new = pipeline.duplicated(pipeline.place).selected(pipeline.place)
        moment = replace(moment, name="Copy", pipeline=new, result=None)
        self.subject.push(replace(moment, settings=self.session.settings))

    @precondition(lambda self: self.subject.history.undo_name)
    @rule()
    def undo(self) -> None:
        before, place = self.subject.history.state
        self.subject.undo()
        after, now = self.subject.history.state
        assert now == place - 1
        assert [each.result for each in after] == [each.result for each in before]
        self._check_returned()

    @precondition(lambda self: self.subject.history.redo_name)
    @rule()
    def redo(self) -> None:
        self.subject.redo()
        self._check_returned()

    @precondition(lambda self: self.subject.history.undo_name)
    @rule()
    def undo_and_redo(self) -> None:
        """Return to the same moment, with its output and its settings."""
        left, was_empty = self.session.settings, self.subject.result is None
        self.subject.undo()
        self.subject.redo()
        moment = self._check_returned()
        if was_empty and left is not None:
            assert self.session.settings == left
        self.subject.undo()
        self.subject.redo()
        again = self._check_returned()
        assert (again.source, again.result) == (moment.source, moment.result)
        assert again.pipeline == moment.pipeline
        # One without a result takes the settings that stand in the form when it is left.
        assert moment.result is None or again.settings == moment.settings

    def _check_returned(self) -> Moment[Image, Image]:
        moment = self.subject.moment
        if moment.settings is not None:
            assert self.session.settings == moment.settings
        if moment.result is not None and moment.result.request.then == self.subject.history.then:
            if moment.settings is None or moment.settings.made(moment.result.request):
                self._check_settings()
            else:  # they were left alone, but their run failed
                assert self.session.freshness is not Freshness.EXACT
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
    def every_task_ends_once(self) -> None:
        open_ = [self.tasks.current] if self.tasks.current is not None else []
        assert sorted(map(id, [*self.ended, *open_])) == sorted(map(id, self.begun))
        assert [task.work for task in open_] == self.worker.work

    @invariant()
    def what_is_shown_is_what_a_run_gives(self) -> None:
        """Whatever is on the screen has the pixels of a run of its request, as a whole."""
        subject = self.subject
        shown = subject.shown
        if shown is None:
            assert subject.result is None
            return
        preview = subject.preview
        part = subject.result
        if shown is subject.previewed:
            assert preview is not None
            assert preview.request is shown
            part = preview
        assert part is not None
        assert part.request is shown
        whole = self.compute(replace(shown, region=None, done=())).image.pixels
        region = shown.region
        if isinstance(region, Region):
            bottom, right = region.top + region.height, region.left + region.width
            whole = whole[region.top : bottom, region.left : right]
        assert (part.image.pixels == whole).all()

    @invariant()
    def nobody_is_answered_in_vain(self) -> None:
        assert not self.wrong

    @invariant()
    def the_badge_is_true(self) -> None:
        assert self.live.badge.freshness is self.session.freshness

    @invariant()
    def steps_stay_with_the_next_picture(self) -> None:
        """No card of the form is lost: it is the one that the settings edit."""
        pipeline, settings_ = self.subject.pipeline, self.session.settings
        if pipeline is not None and settings_ is not None:
            assert pipeline.present.step == settings_.step.unestimated


@pytest.fixture
def paused(qapp: object, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """`Actions` run nothing until they answer."""
    monkeypatch.setattr(tasks, "Worker", Paused)
    Actions.backend = CpuBackend(threads=1)
    yield
    Actions.backend.close()


def test_a_part_with_other_settings_does_not_stay_over_the_result(
    paused: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither one that was shown when the settings came back, nor one that comes later."""
    monkeypatch.setattr("kernelscope.gui.model.freshness.AT_ONCE", -1.0)
    machine = Actions()
    machine.start()
    machine.rest()
    machine.look(1)
    for late in (False, True):
        machine.choose_level("serial")
        (part,) = machine.worker.work
        assert isinstance(part, Request)
        assert part.region is not None
        if not late:
            machine.answer()
            assert machine.session.freshness is Freshness.PART
        machine.choose_auto()
        machine.answer()
        assert machine.session.freshness is Freshness.EXACT
    machine.teardown()


def test_settings_whose_run_failed_come_back_beside_the_output_before_them(paused: None) -> None:
    machine = Actions()
    machine.start()
    machine.rest()
    machine.move_slider(size=5)
    machine.fail()
    machine.rest()
    machine.undo_and_redo()
    assert machine.subject.result is not None
    assert machine.subject.result.request.step.parameters["size"] == 3
    assert machine.session.values.numbers["size"] == 5
    assert machine.session.freshness is Freshness.OUT_OF_DATE
    machine.teardown()


@pytest.fixture
def slow(paused: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pictures of few pixels be computed in parts."""
    monkeypatch.setattr(freshness, "PROBE_SIDE", 3)
    monkeypatch.setattr(freshness, "_SMALLEST_SIDE", 2)


@pytest.mark.parametrize("seconds", [1e-5, 0.05, RESTING])
def test_a_part_is_followed_by_the_whole_when_code_becomes_ready_beside_it(
    seconds: float, slow: None
) -> None:
    """The cost was unknown then, and the first part for it is inside of the one that is shown."""
    machine = Actions()
    machine.start()
    machine.answer(compiled=False, seconds=0.08)
    machine.answer(compiled=False, seconds=0.2)
    assert machine.subject.shown is not None
    assert machine.subject.shown.region == Region(1, 1, 5, 6)
    assert not machine.worker.work
    machine.finish_compiling()
    machine.live._on_rest()
    machine.answer(seconds=seconds)
    machine.rest()
    machine.teardown()


@pytest.mark.parametrize("line", [-math.inf, 4.0])
@pytest.mark.parametrize("seconds", [2 * RESTING, 2 * LOOKING])
def test_the_rest_of_the_view_follows_the_part_that_a_pause_has_time_for(
    line: float, seconds: float, slow: None
) -> None:
    """At 100 %, a slow denoiser left most of what a photographer looked at as it was; half of what
    it computed beside a line to drag was hidden. One too slow for the view took turns between a
    part of the output and one of the view as long as the window was left alone."""
    machine = Actions()
    machine.start()
    machine.look(1)
    machine.subject.view.output_from = line, -math.inf
    wanted = machine.subject.wanted()
    assert wanted is not None
    (view,) = machine.subject.visible_parts(wanted)
    pace = seconds / pixels_of(replace(wanted, region=view))
    machine.live._on_rest()
    parts = []
    while machine.worker.work and len(parts) < 9:
        (work,) = machine.worker.work
        assert isinstance(work, Request)
        parts.append(work.region)
        machine.answer(seconds=pace * pixels_of(work))
    assert not machine.worker.work
    whole = seconds <= LOOKING
    assert len(parts) == len(set(parts)) > 2 * whole
    if not whole:  # as much of it as there is time for
        assert pace * pixels_of(replace(wanted, region=parts[-1])) > 2 * RESTING
    assert view not in parts[:-1]
    assert (parts[-1] == view) is whole
    for part in parts[1 : len(parts) - whole]:  # the first had begun before there was a line
        assert isinstance(part, Region)
        assert part.left >= line
    assert machine.subject.shown is not None
    assert machine.subject.shown.region == parts[-1]
    machine.teardown()


EXAMPLES = [
    pytest.param(20, marks=pytest.mark.slow),
    pytest.param(2000, marks=pytest.mark.exhaustive),
]


@pytest.mark.parametrize("examples", EXAMPLES)
def test_the_output_is_that_of_the_settings_whatever_is_done(examples: int, slow: None) -> None:
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
