"""The volumes that are opened together: their list, and the map of their noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from kernelscope import filters
from kernelscope.engine.request import RunSettings
from kernelscope.gui.docks.volume_components import ComponentsPanel
from kernelscope.gui.model.display import Display
from kernelscope.gui.model.displays import PaneSide, automatic_of
from kernelscope.gui.model.noise_map import figures_of, noise_map
from kernelscope.gui.session.session import KIND
from kernelscope.gui.session.subject import COMPONENT, MOMENT, Fields
from kernelscope.gui.session.volume_subject import VolumeSubject
from kernelscope.gui.work.background import Background
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume


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
        self.components = ComponentsPanel()
        """Placed above the settings."""
        self._wanted: tuple[Volume, ...] = ()
        """The volumes that are being opened, or are open."""
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
            self._remember(volumes, answer[1])
            self.subject.open_each(answer[0])

        self._background.start("scan", work, show)

    def show_member(self, volume: Volume, name: str) -> None:
        display = self.subject.view.displays.of(PaneSide.INPUT)
        if display is not None:
            self._remember([volume], [display])  # the same greys for all
        self.subject.show_member(Scan((volume,)), name)

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
            text, figures = diagnostic.describe(made_with), figures_of(shown)
            caption = f"{diagnostic.name}: {text}, {figures}"
            self.subject.show_map(shown, made_with, caption)
            show_status(f"{text}: {figures}.")

        work = partial(noise_map, volume, diagnostic, made_with)
        self._background.start("noise", work, show)
