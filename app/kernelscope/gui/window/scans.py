"""The volumes that are opened: their list, the steps through them, and the map of their noise.

a file of several volumes -> its first one, and the slider
slider, Alt+full stop, Alt+comma, Play -> [read] -> page.show_member
several components -> the same slider chooses the one that is shown
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QWidget

from kernelscope.base.errors import NotANumber
from kernelscope.base.text import enumerated, one_line
from kernelscope.engine.request import RunSettings
from kernelscope.engine.result import Result, same_output
from kernelscope.files.names import stem_of
from kernelscope.gui.docks.volume_components import ComponentsPanel, VolumeStepBar
from kernelscope.gui.model.display import ColourMap, Display, PaneSide, first_of, map_of, table
from kernelscope.gui.model.history import ReferenceOrigin
from kernelscope.gui.model.slice_drawing import composite, dyes, moment
from kernelscope.gui.model.volume_files import MOST_BYTES, FilteredFile, VolumeSeries
from kernelscope.gui.session.canvas_view import DRAWN
from kernelscope.gui.session.session import KIND, VIEW
from kernelscope.gui.session.subject import COMPONENT, MOMENT, REFERENCE, SHOWN, Fields
from kernelscope.gui.session.volume_subject import VolumeSubject
from kernelscope.gui.widgets import commands
from kernelscope.gui.widgets.commands import Action
from kernelscope.gui.work.background import Background
from kernelscope.images.image import Image
from kernelscope.images.levels import relevelled
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume

if TYPE_CHECKING:
    from kernelscope.gui.window.frame import Frame


class Scans(QObject):
    add_wanted = Signal(object)
    """`list of Path`: Files to add as components; empty to let the user choose."""

    def __init__(
        self,
        subject: VolumeSubject,
        background: Background,
        parent: QWidget,
    ) -> None:
        super().__init__(parent)
        self.subject, self._background = subject, background
        self.components = ComponentsPanel()  # placed above the settings
        self._wanted: tuple[Volume, ...] = ()  # the volumes that are being opened, or are open
        self._displays: dict[tuple[Path | None, int], Display] = {}
        """The last one of each channel of a file, in which all its times are drawn."""
        self._views = 0  # choices of a view so far
        self.components.chosen.connect(subject.choose)
        self.components.reordered.connect(lambda volumes: self.open(volumes, name="Volumes"))
        self.components.add_wanted.connect(self.add_wanted)
        self.components.hide()
        self._references: VolumeSeries | None = None  # the file of the reference that was chosen
        subject.when({MOMENT, COMPONENT}, self._show_components)
        subject.when({MOMENT, COMPONENT}, self._follow_reference)
        subject.session.follow(self._on_session)

    def _on_session(self, fields: Fields) -> None:
        self._views += bool(fields & {KIND, VIEW})
        if KIND in fields:
            self.components.setVisible(self.subject.is_front)

    def _show_components(self) -> None:
        source = self.subject.source
        self._wanted = source.volumes if source is not None else ()
        self.components.show_volumes(self._wanted, self.subject.component)

    def _follow_reference(self) -> None:
        """Compare another time or channel with the same one of the reference's file."""
        subject, due = self.subject, self.subject.reference_due
        if due is None:
            self._background.forget("reference of part")
            return
        (image, place), part = due, subject.part
        if place == image.among:
            subject.set_reference(image, ReferenceOrigin.KEPT)
            return
        count, series = math.prod(axis.count for axis in place), self._references
        if image.path is None:
            return
        if series is None or series.path != image.path or series.count != count:
            series = self._references = VolumeSeries(image.path, count, axes=place)
        index = 0
        for axis in place:
            index = index * axis.count + axis.index

        def show(found: Volume) -> None:
            series.keep(index, found)
            if subject.source is not None and subject.part is part and subject.reference_due:
                subject.set_reference(relevelled(found, image.given_levels), ReferenceOrigin.KEPT)

        def failed(error: Exception) -> None:
            subject.reference_problem = str(error)
            subject.note(REFERENCE)

        known = series.kept(index)
        if known is not None:
            show(known)
        else:
            self._background.start("reference of part", partial(series.read, index), show, failed)

    def open(
        self, volumes: Sequence[Volume], truth: Sequence[Volume] = (), *, name: str = ""
    ) -> None:
        """Show `volumes` as one scan, if they are of one head; see `VolumeSubject.open_volumes`."""
        self._wanted = tuple(volumes)

        def stack() -> tuple[Scan, list[Display]]:
            scan = Scan(tuple(volumes))
            _ = scan.planes  # raises `AppError` if shapes differ
            return scan, [first_of(volume) for volume in volumes]

        def show(stacked: tuple[Scan, list[Display]]) -> None:
            scan, displays = stacked
            self._displays.clear()
            self._remember(volumes, displays)
            self.subject.open_volumes(scan, truth, name=name)

        def failed(error: Exception) -> None:
            self._show_components()
            self._background.report(error)

        self._background.start("scan", stack, show, failed)

    def open_each(self, volumes: Sequence[Volume]) -> None:
        def work() -> tuple[list[Scan], list[Display]]:
            return [Scan((volume,)) for volume in volumes], list(map(first_of, volumes))

        def show(answer: tuple[list[Scan], list[Display]]) -> None:
            self._displays.clear()
            self._remember(volumes, answer[1])
            self.subject.open_each(answer[0])

        self._background.start("scan", work, show)

    def show_member(self, volume: Volume, result: Result | None = None) -> None:
        scan = Scan((volume,)) if result is None else result.request.scan
        volume = scan.volumes[0]
        before, displays = self.subject.part, self.subject.view.displays
        display = displays.of(PaneSide.INPUT)
        if display is not None and displays.image(PaneSide.INPUT) is before:  # it was drawn
            self._displays[before.path, before.channel_number] = display
        known = self._displays.get((volume.path, volume.channel_number))
        if known is not None:
            self._remember([volume], [known])
        self.subject.show_member(scan, result)

    def find_displays(self, volumes: Iterable[Volume]) -> None:
        """Find out, on any thread, how channels are drawn that were not in front."""
        for volume in volumes:
            if self.display_of(volume) is None:
                found = first_of(volume)  # takes a while, in which the user may choose one
                self._displays.setdefault((volume.path, volume.channel_number), found)

    def display_of(self, volume: Volume) -> Display | None:
        """Return how a channel is drawn; None until it was in front, or in `find_displays`."""
        return self._displays.get((volume.path, volume.channel_number))

    def add(self, volume: Volume) -> None:
        self.open([*self._wanted, volume], name=f"Add {volume.title}")

    def _remember(self, volumes: Sequence[Volume], displays: Sequence[Display]) -> None:
        for volume, display in zip(volumes, displays, strict=True):
            self.subject.view.displays.remember(volume, display)

    def show_noise(self, settings: RunSettings, show_status: Callable[[str], None]) -> None:
        """Show the map of the filter, or of another filter, until the view changes."""
        volume, views = self.subject.part, self._views
        diagnostic, made_with = self.subject.map_of(settings)

        def work() -> tuple[Volume, str]:
            sigmas, text = diagnostic.compute(volume.voxels, made_with)
            shown = volume.with_voxels(sigmas, as_float=True)
            shown = replace(shown, title=f"{stem_of(volume)}-{diagnostic.name.lower()}")
            return shown, f"{text}: {_figures_of(shown)}"

        def show(made: tuple[Volume, str]) -> None:
            if volume is not self.subject.part:
                return
            shown, text = made
            if views == self._views:  # else the user has chosen another view meanwhile
                self.subject.show_map(shown, made_with, f"{diagnostic.name}: {text}")
            show_status(f"{text}.")

        self._background.start("noise", work, show)


def _figures_of(shown: Volume) -> str:
    """Return ``median 12.1, mostly 10.2 to 15``."""
    low, middle, high = np.percentile(shown.voxels[::2, ::2, ::2], (5, 50, 95)).tolist()
    return f"median {middle:.4g}, mostly {low:.4g} to {high:.4g}"


_Method = TypeVar("_Method", bound=Callable[..., Any])

PLAY_MS = 150  # time for which a volume is seen while they are played, at least

_FEW = 7  # channels, as many as there are colours, that are drawn together unasked

_MEMBER, _CHANNELS, _PICTURE = "member", "channels", "composite"
"""Topics of reading: a volume to show, the channels of a composite, those of its picture."""

_NO_CHANNELS = "This file has no channels: its volumes are times, or were opened together."


def _of_channels(method: _Method) -> _Method:
    """Declare an action for each of the first nine channels (decorator)."""
    for number in reversed(range(9)):
        Action(
            f"channel{number + 1}",
            f"Channel &{number + 1}",
            f"Ctrl+Alt+{number + 1}",
            need=commands.MEMBERS,
            argument=number,
            ticked=lambda steps: steps.drawn_numbers,
            help="volumes",
        )(method)
    return method


class VolumeSteps(QObject):
    """Conducts the bars below the slices."""

    def __init__(self, frame: Frame, open_picture: Callable[[Image], None]) -> None:
        super().__init__(frame)
        self._frame, self._open_picture = frame, open_picture
        self._page, self._scans, self._background = frame.volumes, frame.scans, frame.background
        self._ask_nan = frame.file_dialogs.ask_nan
        self._members: WeakKeyDictionary[Volume, tuple[VolumeSeries, int]] = WeakKeyDictionary()
        """The volumes that were read from files of several, and their places."""
        self._wants_composite: bool | None = None
        """Of each file that has channels; None for those whose channels have colours."""
        self._unread: VolumeSeries | None = None  # a file whose channels could not be read for it
        self._composite: VolumeSeries | None = None  # the file whose channels are drawn together
        self._channels: dict[int, Volume] = {}  # of one time of that file, by their places
        self._awaited: list[int] = []  # places of its channels that are being read
        self._wanted: tuple[VolumeSeries, int] | None = None  # the volume that is being read
        self._filtered: dict[VolumeSeries, FilteredFile] = {}  # those filtered last at the end
        actions = frame.actions_["composite"], frame.actions_["filterFile"]
        self.bar = VolumeStepBar(actions, self._page)
        actions = frame.actions_["composite"], frame.actions_["filterChannels"]
        self.channel_bar = VolumeStepBar(actions, self._page, beside_times=True)
        """Beside `bar`, which steps through the times then."""
        self._page.add_bar(self.bar)
        self._page.add_bar(self.channel_bar)
        self.timer = QTimer(self, singleShot=True, interval=PLAY_MS)
        self.timer.timeout.connect(self._play_on)
        self.bar.chosen.connect(self._choose)
        self.channel_bar.chosen.connect(self._choose_channel)
        self.bar.played.connect(self._on_played)
        self.bar.eyed.connect(self.show_channel)
        self.channel_bar.eyed.connect(self.show_channel)
        self._page.subject.when({SHOWN}, self._follow)
        self._page.subject.view.when({DRAWN}, self._show_eyes)

    @property
    def count(self) -> int:
        return self.place[2]

    def remember(self, volume: Volume, series: VolumeSeries) -> None:
        """Note that `volume`, which is about to be opened, is the first one of a file."""
        self._keep(volume, series, 0)

    @Action("nextVolume", "&Next Volume", "Alt+.", need=commands.MEMBERS)
    def next(self) -> None:
        """Show the next volume: of the file, or of those that were opened together."""
        self._step(1)

    @Action("previousVolume", "&Previous Volume", "Alt+,", need=commands.MEMBERS)
    def previous(self) -> None:
        """Show the volume before: of the file, or of those that were opened together."""
        self._step(-1)

    @Action("playVolumes", "P&lay Volumes", "Alt+P", need=commands.MEMBERS)
    def play(self) -> None:
        """Show the volumes one after the other, again and again, or stop that."""
        self.bar.set_playing(not self.bar.playing)

    @property
    def is_composite(self) -> bool:
        """Whether each file is drawn with all its channels, and this one could be read."""
        series, index, _ = self.place
        if self._unread is not None and series is self._unread:
            return False
        if self._wants_composite is not None or series is None:
            return bool(self._wants_composite)
        colour = self._page.subject.part.channel.colour
        few = 1 < len(series.along("C", index)) <= _FEW
        return few and map_of(colour) is not ColourMap.GREY

    @Action(
        "composite",
        "Composite of &Channels",
        need=commands.MEMBERS,
        label="Composite",
        ticked=lambda steps: steps.is_composite,
        help="volumes",
    )
    def show_composite(self) -> None:
        """Draw all channels of the file, each in its colour; the output has those that live
        filtering, “Filter channels” or “Filter all” filtered by its settings.
        """
        if self.is_composite:
            self._wants_composite = False
            self._draw_apart()
        elif not self._has_channels:
            self._frame.show_status(_NO_CHANNELS)
        else:
            self._wants_composite, self._unread = True, None
            self._add_channels()

    @_of_channels
    def show_channel(self, number: int) -> None:
        """Draw a channel of the composite, or hide it; pictures and figures of it follow."""
        view = self._page.subject.view
        if number in self._numbers:
            view.choose_look(replace(view.look, hidden=view.look.hidden ^ {number}))
        else:
            self._frame.show_status(
                f"No channel {number + 1} is drawn; Composite draws those of a file together."
            )

    @property
    def _numbers(self) -> list[int]:
        return [volume.channel_number for volume, _ in self._drawn]

    @property
    def drawn_numbers(self) -> frozenset[int]:
        return frozenset(self._numbers) - self._page.subject.view.look.hidden

    @property
    def _drawn(self) -> list[tuple[Volume, Display]]:
        """The channels of the composite in front in their order, with their colours."""
        view = self._page.subject.view
        display = view.displays.of(PaneSide.INPUT)
        if display is None or not view.look.beside:
            return []
        pairs = (self._page.subject.part, display), *view.look.beside
        return sorted(pairs, key=lambda pair: pair[0].channel_number)

    def _show_eyes(self) -> None:
        names = [
            (
                volume.channel.name or f"Channel {volume.channel_number + 1}",
                f"#{table(display.colour_map)[-1].tobytes().hex()}",
            )
            for volume, display in self._drawn
        ]
        drawn = self.drawn_numbers
        series = self.place[0]
        has_both = series is not None and series.has_both
        for bar, has in (self.bar, not has_both), (self.channel_bar, has_both):
            bar.show_eyes(names * has, [number in drawn for number in self._numbers * has])
        self._frame.actions_.tick(self)

    @property
    def _has_channels(self) -> bool:
        series, index, _ = self.place
        return series is not None and bool(series.along("C", index))

    def _draw_apart(self) -> None:
        view = self._page.subject.view
        self._background.forget(_CHANNELS)
        self._composite, self._channels, self._awaited = None, {}, []
        view.choose_look(replace(view.look, beside=(), filtered=(), hidden=frozenset()))
        self._frame.actions_.tick(self)

    def _add_channels(self) -> None:
        """Let the views add the other channels to the one in front."""
        if self._page.subject.is_behind:
            return
        series, index, _ = self.place
        if self._composite is not None and self._composite is not series:
            self._draw_apart()
        self._frame.actions_.tick(self)
        if not (series and self.is_composite and self._has_channels):
            return
        self._composite = series
        view = self._page.subject.view
        maps = dict(zip(self._channels, dyes(list(self._channels.values())), strict=True))
        others = [
            (volume, replace(display, colour_map=maps[number]))
            for number, volume in self._channels.items()
            if number != index and (display := self._scans.display_of(volume)) is not None
        ]
        if index not in maps or len(others) < len(maps) - 1:  # it is another time, as after Undo
            view.choose_look(replace(view.look, beside=(), filtered=()))
            self._read_channels(series, index)
            return
        look = replace(view.look, beside=tuple(others))
        view.choose_look(look.beside_output(self._outputs_beside(series)))
        if view.chosen_map is not maps[index]:
            view.choose_map(maps[index])

    def _outputs_beside(self, series: VolumeSeries) -> list[Volume]:
        """Return the other channels, filtered by the settings of the output in front."""
        shown, filtered = self._scans.subject.result, self.filtered_of(series)
        if shown is None:
            return []
        groups: list[Sequence[Result | None]] = [self._scans.subject.together]
        if filtered is not None:
            groups.append([filtered.results.get(place) for place in self._channels])
        for group in groups:
            known = [each for each in group if each is not None]
            if any(same_output(each, shown) for each in known):
                return [each.scan.volumes[0] for each in known]
        return []

    def _read_channels(self, series: VolumeSeries, index: int) -> None:
        """Read the channels of the time of a volume, and draw them together."""
        wanted = series.along("C", index)
        if wanted == self._awaited:
            return
        self._awaited = wanted

        def show(found: dict[int, Volume]) -> None:
            self._channels, self._awaited = found, []
            self._add_channels()

        def failed() -> None:
            self._unread = series
            self._draw_apart()

        self._read(_CHANNELS, series, wanted, show, self.show_composite, failed)

    def _read(
        self,
        topic: str,
        series: VolumeSeries,
        wanted: Sequence[int],
        then: Callable[[dict[int, Volume]], None],
        again: Callable[[], None],
        failed: Callable[[], None] = lambda: None,
    ) -> None:
        """Call `then` with volumes of a file by their places, at once where all are kept.

        `again`: does the same once the user has chosen a number for NaN.
        """
        own = dict(self._channels) if self._composite is series else {}
        front, place, _ = self.place
        if front is series:
            base = self._page.subject.base
            assert base is not None
            own[place] = base.volumes[0]
        known = {n: own.get(n) or series.kept(n) for n in wanted}

        def work() -> dict[int, Volume]:
            found = {n: volume or series.read(n) for n, volume in known.items()}
            if len(found) > 1:
                self._scans.find_displays(found.values())
            return found

        def show(found: dict[int, Volume]) -> None:
            for number, volume in found.items():
                self._keep(volume, series, number)
            then(found)

        def replace_nan(number: float) -> None:
            series.nan = number
            again()

        def fail(error: Exception) -> None:
            failed()
            if isinstance(error, NotANumber):
                self._ask_nan(error, replace_nan)
            elif topic == _CHANNELS and self._wants_composite is None:  # nobody asked for them
                self._frame.show_status(f"The channels are not drawn together: {error}")
            else:
                self._background.report(error)

        found = {n: volume for n, volume in known.items() if volume is not None}
        drawn = len(wanted) == 1 or all(map(self._scans.display_of, found.values()))
        if drawn and len(found) == len(wanted):
            self._background.forget(topic)
            show(found)
        else:
            self._background.start(topic, work, show, fail)

    @Action("openComposite", "Open Co&mposite of Channels", need=commands.MEMBERS, help="volumes")
    def open_composite(self) -> None:
        """Open the slice that was clicked last as a picture of all channels in their colours, or
        of those that “Composite” draws.
        """
        series, index, _ = self.place
        subject = self._page.subject
        if series is None or not self._has_channels:
            self._frame.show_status(_NO_CHANNELS)
            return
        view = subject.view
        plane = view.planes[view.active_plane]
        place = view.position[plane.axis]

        def draw(channels: dict[int, Volume]) -> None:
            maps = dyes(list(channels.values()))
            displays = {n: self._scans.display_of(volume) for n, volume in channels.items()}
            displays[index] = view.displays.of(PaneSide.INPUT)
            pairs = [
                (volume, replace(displays[number] or first_of(volume), colour_map=each))
                for (number, volume), each in zip(channels.items(), maps, strict=True)
            ]
            work = partial(composite, pairs, plane, place, view.look_in(plane))
            self._background.start(_PICTURE, work, self._open_picture)

        self._read(_PICTURE, series, series.along("C", index), draw, self.open_composite)

    def _keep(self, volume: Volume, series: VolumeSeries, index: int) -> None:
        self._members[volume] = series, index
        series.keep(index, volume)

    @property
    def filtered(self) -> FilteredFile | None:
        """The volumes of a file that were filtered last."""
        return next(reversed(self._filtered.values()), None)

    def filtered_of(self, series: VolumeSeries | None) -> FilteredFile | None:
        return self._filtered.get(series) if series is not None else None

    def keep_filtered(self, filtered: FilteredFile) -> None:
        self._filtered.pop(filtered.series, None)
        self._filtered[filtered.series] = filtered

    def _make_room(self, front: VolumeSeries | None) -> None:
        """Drop outputs of files behind, those filtered first, beyond the limit."""
        behind = [each for each in self._filtered.values() if each.series is not front]
        sizes = [each.bytes for each in behind]
        lost = []
        while sum(sizes) > MOST_BYTES:
            sizes.pop(0)
            lost.append(behind.pop(0).series)
            del self._filtered[lost[-1]]
        if lost:
            names = enumerated([one_line(each.path.name) for each in lost], "and")
            text = f"Dropped to make room: the outputs of all volumes of {names}."
            self._frame.show_status(text)

    def note_output(self, filtered: FilteredFile, place: int) -> None:
        """Show the output of a volume that is in front, or drawn beside that."""
        result = filtered.results[place]
        self._keep(result.request.scan.volumes[0], filtered.series, place)
        subject = self._page.subject
        if self.place[:2] != (filtered.series, place) or not self.result_of(*self.place[:2]):
            self._add_channels()
        elif subject.source is result.request.source:
            subject.show_result(result)
            subject.session.show_estimates(result.request)
        else:
            self._show(filtered.series, place, result.request.scan.volumes[0])

    def result_of(self, series: VolumeSeries | None, place: int) -> Result | None:
        """Return the output of a volume of the file in front by the present steps, if known."""
        subject, filtered = self._scans.subject, self.filtered_of(series)
        if series is None or filtered is None or subject.session.settings is None:
            return None
        if not filtered.is_of(series, subject.steps_of_all(), subject.levels):
            return None
        return filtered.results.get(place)

    def _show(self, series: VolumeSeries, index: int, volume: Volume) -> None:
        self._scans.show_member(volume, self.result_of(series, index))

    @property
    def place(self) -> tuple[VolumeSeries | None, int, int]:
        """The file, if the steps lead through one, the place in it, and the number."""
        source = self._page.subject.base
        if source is None:
            return None, 0, 0
        if len(source.volumes) > 1:
            return None, self._page.subject.component, len(source.volumes)
        series, index = self._members.get(source.volumes[0], (None, 0))
        return series, index, series.count if series is not None else 1

    def _follow(self) -> None:
        series, index, count = self.place
        self._make_room(series)
        kind = "Volume" if series is None else series.what.capitalize()
        note = (
            ""
            if count < 2
            else self._page.subject.part.title
            if series is None
            else series.name(index)
        )
        self._page.name_member(f"{kind.lower()} {index + 1}" if count > 1 else "")
        self._name_filtering()
        reading = self._last != index
        if reading:
            index, note = self._last, "reading…"
        if series is not None and series.has_both:
            times, channels = (series.along(letter, index) for letter in "TC")
            name = note if reading else self._page.subject.part.channel.name
            place = times.index(index)
            self.bar.show_place("Time", place, len(times), self._moment(place))
            self.channel_bar.show_place("Channel", channels.index(index), len(channels), name)
        else:
            is_film = series is not None and [axis.letter for axis in series.axes] == ["T"]
            if is_film and not reading:
                note = ", ".join(filter(None, (note, self._moment(index))))
            self.bar.show_place(kind, index, count, note, of_file=series is not None)
            self.channel_bar.hide()
        self._add_channels()
        if count < 2:
            self.bar.set_playing(False)

    def _name_filtering(self) -> None:
        """Name the actions that filter several volumes by their number."""
        series, index, count = self.place
        every = series.counted(count) if series is not None and count > 1 else "volumes"
        channels = len(series.along("C", index)) if series is not None else 0
        for id_, label, title in (
            ("filterFile", f"Filter all {every}", f"Filter &All {every.title()}"),
            (
                "filterChannels",
                f"Filter {channels} channels" if channels else "Filter channels",
                f"Filter {channels or ''} C&hannels of This Time".replace("  ", " "),
            ),
        ):
            action = self._frame.actions_[id_]
            if action.iconText() != label:  # Qt would lay out menus and tool bars again
                action.setText(title)
                action.setIconText(label)

    def _moment(self, place: int) -> str:
        return moment(self._page.subject.part.interval, place)

    def _step(self, steps: int) -> None:
        places = self._places("T")
        if len(places) > 1:
            self._go(places[(places.index(self._last) + steps) % len(places)])

    def _choose(self, index: int) -> None:
        self.bar.set_playing(False)
        self._go_along("T", index)

    def _choose_channel(self, index: int) -> None:
        self._go_along("C", index)

    def _go_along(self, letter: str, index: int) -> None:
        places = self._places(letter)
        if index < len(places):  # the bar may still be that of a longer file
            self._go(places[index])

    @property
    def _last(self) -> int:
        """The place of the volume that is shown, or is being read."""
        series, index, _ = self.place
        return self._wanted[1] if self._wanted and self._wanted[0] is series else index

    def _places(self, letter: str) -> list[int]:
        """Return the volumes that a bar steps through: all, unless there are two."""
        series, _, count = self.place
        if series is not None and series.has_both:
            return series.along(letter, self._last)
        return list(range(count))

    def _go(self, index: int) -> None:
        series, _, _ = self.place
        if series is None:
            self._scans.components.choose(index)
            self._play_later()
            return
        self._wanted = series, index
        # All channels of a composite come at once, or it would be shown in parts.
        wanted = series.along("C", index) if self._composite is series else [index]

        def show(found: dict[int, Volume]) -> None:
            self._wanted = None
            if self.place[0] is not series:
                return  # another input was opened meanwhile
            if self._composite is series and len(found) > 1:
                self._channels = found
            self._show(series, index, found[index])
            self._play_later()

        def failed() -> None:
            self._wanted = None
            self.bar.set_playing(False)
            self._follow()

        self._read(_MEMBER, series, wanted, show, partial(self._go, index), failed)
        if self._wanted is not None:
            self._follow()

    # --- playing ---

    def _on_played(self, playing: bool) -> None:
        if playing:
            self._play_on()
        else:
            self.timer.stop()

    def _play_later(self) -> None:
        if self.bar.playing:
            self.timer.start()

    def _play_on(self) -> None:
        if self._page.isVisible():
            self._step(1)
        else:
            self.bar.set_playing(False)
