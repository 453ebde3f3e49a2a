"""The volumes that are opened: their list, the steps through them, and the map of their noise.

a file of several volumes -> its first one, and the slider
slider, Alt+full stop, Alt+comma, Play -> [read] -> page.show_member      one step for Undo
several components -> the same slider chooses the one that is shown
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QWidget

from kernelscope import filters
from kernelscope.base.errors import NotANumber
from kernelscope.base.text import one_line
from kernelscope.engine.request import RunSettings
from kernelscope.files.names import stem_of
from kernelscope.gui.docks.volume_components import ComponentsPanel, VolumeStepBar
from kernelscope.gui.model.display import Display, PaneSide, automatic_of
from kernelscope.gui.model.slice_drawing import composite, dyes
from kernelscope.gui.model.volume_files import VolumeSeries
from kernelscope.gui.session.session import KIND
from kernelscope.gui.session.subject import COMPONENT, MOMENT, SHOWN, Fields
from kernelscope.gui.session.subjects import VolumeSubject
from kernelscope.gui.widgets import commands
from kernelscope.gui.widgets.commands import Action
from kernelscope.gui.work.background import Background
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume
from kernelscope.schema.filter import Diagnostic

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
        self.components.chosen.connect(subject.choose)
        self.components.reordered.connect(lambda volumes: self.open(volumes, name="Components"))
        self.components.add_wanted.connect(self.add_wanted)
        self.components.hide()
        subject.when({MOMENT, COMPONENT}, self._show_components)
        subject.session.follow(self._on_session)

    def _on_session(self, fields: Fields) -> None:
        if KIND in fields:
            self.components.setVisible(self.subject.is_front)

    def _show_components(self) -> None:
        source = self.subject.source
        self._wanted = source.volumes if source is not None else ()
        self.components.show_volumes(self._wanted, self.subject.component)

    def open(
        self, volumes: Sequence[Volume], truth: Sequence[Volume] = (), *, name: str = ""
    ) -> None:
        """Show `volumes` as one scan, if they are of one head; see `VolumeSubject.open_volumes`."""
        self._wanted = tuple(volumes)

        def stack() -> tuple[Scan, list[Display]]:
            scan = Scan(tuple(volumes))
            _ = scan.planes  # raises `AppError` if shapes differ
            return scan, [automatic_of(volume) for volume in volumes]

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
            return [Scan((volume,)) for volume in volumes], list(map(automatic_of, volumes))

        def show(answer: tuple[list[Scan], list[Display]]) -> None:
            self._displays.clear()
            self._remember(volumes, answer[1])
            self.subject.open_each(answer[0])

        self._background.start("scan", work, show)

    def show_member(self, volume: Volume, name: str) -> None:
        before, displays = self.subject.part, self.subject.view.displays
        display = displays.of(PaneSide.INPUT)
        if display is not None and displays.image(PaneSide.INPUT) is before:  # it was drawn
            self._displays[before.path, before.channel_number] = display
        known = self._displays.get((volume.path, volume.channel_number))
        if known is not None:
            self._remember([volume], [known])
        self.subject.show_member(Scan((volume,)), name)

    def find_displays(self, volumes: Sequence[Volume]) -> None:
        """Find out how channels are drawn that were not in front; takes a while."""
        for volume in volumes:
            place = volume.path, volume.channel_number
            if place not in self._displays:
                self._displays[place] = automatic_of(volume)

    def display_of(self, volume: Volume) -> Display:
        """Return how a channel is drawn that was in front, or given to `find_displays`."""
        return self._displays[volume.path, volume.channel_number]

    def add(self, volume: Volume) -> None:
        self.open([*self._wanted, volume], name=f"Add {volume.title}")

    def _remember(self, volumes: Sequence[Volume], displays: Sequence[Display]) -> None:
        for volume, display in zip(volumes, displays, strict=True):
            self.subject.view.displays.remember(volume, display)

    def show_noise(self, settings: RunSettings, show_status: Callable[[str], None]) -> None:
        """Show the map of the filter, or of another filter, until the view changes."""
        volume = self.subject.part
        diagnostic, made_with = filters.diagnostic(
            settings.step.filter.id, settings.step.parameters
        )

        def show(shown: Volume) -> None:
            if volume is not self.subject.part:
                return
            text, figures = diagnostic.describe(made_with), _figures_of(shown)
            caption = f"{diagnostic.name}: {text}, {figures}"
            self.subject.show_map(shown, made_with, caption)
            show_status(f"{text}: {figures}.")

        work = partial(_noise_map, volume, diagnostic, made_with)
        self._background.start("noise", work, show)


def _noise_map(volume: Volume, diagnostic: Diagnostic, settings: tuple[Any, ...]) -> Volume:
    shown = volume.with_voxels(diagnostic.compute(volume.voxels, settings), as_float=True)
    return replace(shown, title=f"{stem_of(volume)}-{diagnostic.name.lower()}")


def _figures_of(shown: Volume) -> str:
    """Return ``median 12.1, mostly 10.2 to 15``."""
    low, middle, high = np.percentile(shown.voxels[::2, ::2, ::2], (5, 50, 95)).tolist()
    return f"median {middle:.4g}, mostly {low:.4g} to {high:.4g}"


PLAY_MS = 150  # time for which a volume is seen while they are played, at least

_TOPIC = "member"
_NO_CHANNELS = "This file has no channels: its volumes are times or components."


class VolumeSteps(QObject):
    """Conducts the bar below the slices."""

    def __init__(self, frame: Frame, open_picture: Callable[[Image], None]) -> None:
        super().__init__(frame)
        self._frame, self._open_picture = frame, open_picture
        self._page, self._scans, self._background = frame.volumes, frame.scans, frame.background
        self._ask_nan = frame.file_dialogs.ask_nan
        self._members: WeakKeyDictionary[Volume, tuple[VolumeSeries, int]] = WeakKeyDictionary()
        """The volumes that were read from files of several, and their places."""
        self._channels: tuple[VolumeSeries, dict[int, Volume]] | None = None
        """The file whose channels are drawn together, and those of the time in front by place."""
        self._wanted: int | None = None  # the place of the volume that is being read
        self.bar = VolumeStepBar(frame.actions_["composite"], self._page)
        self.channel_bar = VolumeStepBar(frame.actions_["composite"], self._page, beside_times=True)
        """Beside `bar`, which steps through the times then."""
        self._page.add_bar(self.bar)
        self._page.add_bar(self.channel_bar)
        self.timer = QTimer(self, singleShot=True, interval=PLAY_MS)
        self.timer.timeout.connect(self._play_on)
        self.bar.chosen.connect(self._choose)
        self.channel_bar.chosen.connect(self._choose_channel)
        self.bar.played.connect(self._on_played)
        self._page.subject.when({SHOWN}, self._follow)

    @property
    def count(self) -> int:
        return self._place()[2]

    def remember(self, volume: Volume, series: VolumeSeries) -> None:
        """Note that `volume`, which is about to be opened, is the first one of a file."""
        self._keep(volume, series, 0)

    @Action("nextVolume", "&Next Volume", "Alt+.", need=commands.MEMBERS)
    def next(self) -> None:
        """Show the next component, or the next volume of the file."""
        self._step(1)

    @Action("previousVolume", "&Previous Volume", "Alt+,", need=commands.MEMBERS)
    def previous(self) -> None:
        """Show the component, or the volume of the file, before this one."""
        self._step(-1)

    @Action("playVolumes", "P&lay Volumes", "Alt+P", need=commands.MEMBERS)
    def play(self) -> None:
        """Show the volumes one after the other, again and again, or stop that."""
        self.bar.set_playing(not self.bar.playing)

    @property
    def is_composite(self) -> bool:
        """Whether the slices are drawn with all channels of the file."""
        return self._channels is not None

    @Action(
        "composite",
        "Composite of &Channels",
        need=commands.MEMBERS,
        label="Composite",
        ticked=lambda steps: steps.is_composite,
        help="volumes",
    )
    def show_composite(self) -> None:
        """Draw all channels of the file, each in its colour; the one in front is filtered, the
        others are as they are.
        """
        series, index, _ = self._place()
        if self._channels is not None:
            self._end_composite()
        elif series is None or not series.along("C", index):
            self._frame.show_status(_NO_CHANNELS)
        else:
            self._read_channels(series, index)

    def _read_channels(self, series: VolumeSeries, index: int) -> None:
        """Read the channels of the time of a volume, and draw them together."""

        def show(found: dict[int, Volume]) -> None:
            if self._place()[0] is series:
                self._channels = series, found
                self._add_channels()
                self._frame.actions_.tick(self)

        def work() -> dict[int, Volume]:
            volumes = {n: series.kept(n) or series.read(n) for n in series.along("C", index)}
            self._scans.find_displays(list(volumes.values()))
            return volumes

        self._background.start("composite", work, show)

    def _end_composite(self) -> None:
        view = self._page.subject.view
        self._channels = None
        view.choose_look(replace(view.look, beside=()))
        self._frame.actions_.tick(self)

    def _add_channels(self) -> None:
        """Let the views add the other channels to the one in front."""
        if self._channels is None:
            return
        series, channels = self._channels
        place, index, _ = self._place()
        if place is not series:
            self._end_composite()
            return
        if index not in channels:  # another time
            self._read_channels(series, index)
            return
        view = self._page.subject.view
        maps = dict(zip(channels, dyes(list(channels.values())), strict=True))
        others = tuple(
            (volume, replace(self._scans.display_of(volume), colour_map=maps[number]))
            for number, volume in channels.items()
            if number != index
        )
        view.choose_look(replace(view.look, beside=others))
        if view.chosen_map is not maps[index]:
            view.choose_map(maps[index])

    @Action("openComposite", "Open Co&mposite of Channels", need=commands.MEMBERS, help="volumes")
    def open_composite(self) -> None:
        """Open the slice that was clicked last as a picture of all channels in their colours."""
        series, index, _ = self._place()
        subject = self._page.subject
        if series is None or not series.along("C", index):
            self._frame.show_status(_NO_CHANNELS)
            return
        view = subject.view
        plane = view.planes[view.active_plane]

        def work() -> Image:
            volumes = [series.kept(n) or series.read(n) for n in series.along("C", index)]
            return composite(volumes, plane, view.position[plane.axis])

        self._background.start("composite", work, self._open_picture)

    def _keep(self, volume: Volume, series: VolumeSeries, index: int) -> None:
        self._members[volume] = series, index
        series.keep(index, volume)

    def _place(self) -> tuple[VolumeSeries | None, int, int]:
        """Return the file, if the steps lead through one, the place in it, and the number."""
        source = self._page.subject.source
        if source is None:
            return None, 0, 0
        if len(source.volumes) > 1:
            return None, self._page.subject.component, len(source.volumes)
        series, index = self._members.get(source.volumes[0], (None, 0))
        return series, index, series.count if series is not None else 1

    def _follow(self) -> None:
        series, index, count = self._place()
        if series is None:
            self._wanted = None
        kind = "Component" if series is None else series.what.capitalize()
        note = (
            ""
            if count < 2
            else self._page.subject.part.title
            if series is None
            else series.name(index)
        )
        self._page.name_member(f"{kind.lower()} {index + 1}" if count > 1 else "")
        if self._wanted is not None:
            index, note = self._wanted, "reading…"
        if series is not None and series.has_both:
            times, channels = (series.along(letter, index) for letter in "TC")
            name = note if self._wanted is not None else self._page.subject.part.channel.name
            self.bar.show_place("Time", times.index(index), len(times), "")
            self.channel_bar.show_place("Channel", channels.index(index), len(channels), name)
        else:
            self.bar.show_place(kind, index, count, note)
            self.channel_bar.hide()
        self._add_channels()
        if count < 2:
            self.bar.set_playing(False)

    def _step(self, steps: int) -> None:
        places = self._places("T")
        if len(places) > 1:
            self._go(places[(places.index(self._last) + steps) % len(places)])

    def _choose(self, index: int) -> None:
        self.bar.set_playing(False)
        self._go(self._places("T")[index])

    def _choose_channel(self, index: int) -> None:
        self._go(self._places("C")[index])

    @property
    def _last(self) -> int:
        """The place of the volume that is shown, or is being read."""
        return self._place()[1] if self._wanted is None else self._wanted

    def _places(self, letter: str) -> list[int]:
        """Return the volumes that a bar steps through: all, unless there are two."""
        series, _, count = self._place()
        if series is not None and series.has_both:
            return series.along(letter, self._last)
        return list(range(count))

    def _go(self, index: int) -> None:
        series, _, _ = self._place()
        if series is None:
            self._scans.components.choose(index)
            self._play_later()
            return
        volume = series.kept(index)
        if volume is not None:
            self._background.forget(_TOPIC)
            self._show(series, index, volume)
            return
        self._wanted = index
        self._follow()

        def replace_nan(number: float) -> None:
            series.nan = number
            self._go(index)

        def failed(error: Exception) -> None:
            self._wanted = None
            self.bar.set_playing(False)
            self._follow()
            if isinstance(error, NotANumber):
                self._ask_nan(error, replace_nan)
            else:
                self._background.report(error)

        self._background.start(
            _TOPIC,
            lambda: series.read(index),
            lambda read: self._show(series, index, read),
            failed,
        )

    def _show(self, series: VolumeSeries, index: int, volume: Volume) -> None:
        self._wanted = None
        if self._place()[0] is not series:
            return  # another input was opened meanwhile
        self._keep(volume, series, index)
        self._scans.show_member(
            volume, f"{series.what.capitalize()} {index + 1} of {one_line(series.path.name)}"
        )
        self._play_later()

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
