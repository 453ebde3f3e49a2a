"""Steps through components and through the volumes of a file: slider, keys and playing.

a file of several volumes -> its first one, and the slider
slider, Alt+full stop, Alt+comma, Play -> [read] -> page.show_member      one step for Undo
several components -> the same slider chooses the one that is shown
"""

from __future__ import annotations

from dataclasses import replace
from weakref import WeakKeyDictionary

from PySide6.QtCore import QObject, QTimer, Signal

from kernelscope.base.errors import NotANumber
from kernelscope.base.text import one_line
from kernelscope.gui.docks.volume_components import VolumeStepBar
from kernelscope.gui.model.display import Display
from kernelscope.gui.model.slice_drawing import composite, dyed
from kernelscope.gui.model.volume_series import VolumeSeries
from kernelscope.gui.session.subject import SHOWN
from kernelscope.gui.widgets import commands
from kernelscope.gui.widgets.commands import Action
from kernelscope.gui.window.frame import Frame
from kernelscope.images.image import Image
from kernelscope.images.volume import Volume

PLAY_MS = 150
"""Time for which a volume is seen while they are played, at least."""

_TOPIC = "member"
_NO_CHANNELS = "This file has no channels: its volumes are times or components."


class VolumeSteps(QObject):
    """Conducts the bar below the slices."""

    composed = Signal(object)  # `Image`: It is to be opened
    composite_shown = Signal()  # the composite is shown, or no longer
    announced = Signal(str)  # one line for the status bar

    def __init__(self, frame: Frame) -> None:
        super().__init__(frame)
        self._page, self._scans, self._background = frame.volumes, frame.scans, frame.background
        self._ask_nan = frame.file_dialogs.ask_nan
        self._members: WeakKeyDictionary[Volume, tuple[VolumeSeries, int]] = WeakKeyDictionary()
        """The volumes that were read from files of several, and their places."""
        self._channels: tuple[VolumeSeries, list[tuple[Volume, Display]]] | None = None
        """The file whose channels are drawn together, and how each is."""
        self._wanted: int | None = None
        """The place of the volume that is being read."""
        self.bar = VolumeStepBar(self._page)
        self._page.add_bar(self.bar)
        self.timer = QTimer(self, singleShot=True, interval=PLAY_MS)
        self.timer.timeout.connect(self._play_on)
        self.bar.chosen.connect(self._choose)
        self.bar.played.connect(self._on_played)
        self._page.subject.when({SHOWN}, self._follow)

    @property
    def count(self) -> int:
        return self._place()[2]

    def remember(self, volume: Volume, series: VolumeSeries) -> None:
        """Note that `volume`, which is about to be opened, is the first one of a file."""
        self._keep(volume, series, 0)

    @Action(
        "nextVolume",
        "&Next Volume",
        keys=("Alt+.",),
        tip="Show the next component, or the next volume of the file",
        need=commands.MEMBERS,
    )
    def next(self) -> None:
        self._step(1)

    @Action(
        "previousVolume",
        "&Previous Volume",
        keys=("Alt+,",),
        tip="Show the component, or the volume of the file, before this one",
        need=commands.MEMBERS,
    )
    def previous(self) -> None:
        self._step(-1)

    @Action(
        "playVolumes",
        "P&lay Volumes",
        keys=("Alt+P",),
        tip="Show the volumes one after the other, again and again, or stop that",
        need=commands.MEMBERS,
    )
    def play(self) -> None:
        self.bar.set_playing(not self.bar.playing)

    @property
    def is_composite(self) -> bool:
        """Whether the slices are drawn with all channels of the file."""
        return self._channels is not None

    @Action(
        "composite",
        "Composite of &Channels",
        tip="Draw all channels of the file, each in its colour; the one in front is filtered, the "
        "others are as they are",
        need=commands.MEMBERS,
        label="Composite",
        checkable=True,
        ticked=lambda steps: steps.is_composite,
        help="volumes",
    )
    def show_composite(self) -> None:
        """Draw all channels of the file together, or the one in front alone."""
        series, _, _ = self._place()
        if self._channels is not None:
            self._end_composite()
        elif series is None or series.what != "channel":
            self.announced.emit(_NO_CHANNELS)
        else:

            def show(found: list[tuple[Volume, Display]]) -> None:
                if self._place()[0] is series:
                    self._channels = series, found
                    self._add_channels()
                    self.composite_shown.emit()

            def work() -> list[tuple[Volume, Display]]:
                volumes = [series.kept(n) or series.read(n) for n in range(series.count)]
                return list(zip(volumes, dyed(volumes), strict=True))

            self._background.start("composite", work, show)

    def _end_composite(self) -> None:
        view = self._page.subject.view
        self._channels = None
        view.choose_look(replace(view.look, beside=()))
        self.composite_shown.emit()

    def _add_channels(self) -> None:
        """Let the views add the other channels to the one in front."""
        if self._channels is None:
            return
        series, channels = self._channels
        place, index, _ = self._place()
        if place is not series:
            self._end_composite()
            return
        view, display = self._page.subject.view, channels[index][1]
        others = tuple(each for number, each in enumerate(channels) if number != index)
        view.choose_look(replace(view.look, beside=others))
        if view.chosen_map is not display.colour_map:
            view.choose_map(display.colour_map)

    @Action(
        "openComposite",
        "Open Co&mposite of Channels",
        tip="Open the slice that was clicked last as a picture of all channels in their colours",
        need=commands.MEMBERS,
        help="volumes",
    )
    def open_composite(self) -> None:
        series, _, _ = self._place()
        subject = self._page.subject
        if series is None or series.what != "channel":
            self.announced.emit(_NO_CHANNELS)
            return
        view = subject.view
        plane = view.planes[view.active_plane]

        def work() -> Image:
            volumes = [series.kept(n) or series.read(n) for n in range(series.count)]
            return composite(volumes, plane, view.position[plane.axis])

        self._background.start("composite", work, self.composed.emit)

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
        self.bar.show_place(kind, index, count, note)
        self._add_channels()
        if count < 2:
            self.bar.set_playing(False)

    def _step(self, steps: int) -> None:
        _, index, count = self._place()
        if count > 1:
            start = index if self._wanted is None else self._wanted
            self._go((start + steps) % count)

    def _choose(self, index: int) -> None:
        self.bar.set_playing(False)
        self._go(index)

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

        def failed(error: Exception) -> None:
            self._wanted = None
            self.bar.set_playing(False)
            self._follow()
            if isinstance(error, NotANumber):
                self._ask_nan(error, lambda number: self._go_with(series, number, index))
            else:
                self._background.report(error)

        self._background.start(
            _TOPIC,
            lambda: series.read(index),
            lambda read: self._show(series, index, read),
            failed,
        )

    def _go_with(self, series: VolumeSeries, nan: float, index: int) -> None:
        series.nan = nan
        self._go(index)

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
