"""Volumes in the window: the scan that is open, what came of it, and what of both is seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app import filters
from app.engine.image import Image
from app.engine.request import Request, Result
from app.engine.scan import Scan
from app.engine.slices import by_slices, picture_of
from app.engine.volume import Volume
from app.filters.mri_sigma import estimate_local
from app.filters.spec import Kind
from app.gui.background import Background
from app.gui.comparison import Judged, View
from app.gui.histogram_view import Histogram
from app.gui.quality_panel import QualityPanel
from app.gui.view_bar import GAINS
from app.gui.volume_components import Components
from app.gui.volume_judging import judge_volumes
from app.gui.volume_planes import Window, auto_gain, auto_window
from app.gui.volume_viewer import VolumeViewer

NO_TRUTH = "Only of a phantom the truth is known"


class VolumePage(QWidget):
    """Takes the place of the pictures while a scan is open.

    Attributes
    ----------
    scan : Scan or None
        What is filtered next.
    result : Result or None
        The last run on it.
    components : Components
        The list that belongs to this page; it stands with the settings.

    Signals
    -------
    opened
        There is another scan.
    drawn : int or None, bool
        The gain of what is shown on the right, None where it is not amplified; and whether
        that is a difference or a map, which can be saved.
    """

    opened = Signal()
    drawn = Signal(object, bool)

    def __init__(
        self,
        background: Background,
        report: Callable[[Exception], None],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setObjectName("volumePage")
        self._background, self._report = background, report
        self.scan: Scan | None = None
        self.result: Result | None = None
        self._wanted: tuple[Volume, ...] = ()
        """What is being opened, or is open."""
        self._truths: WeakKeyDictionary[Volume, Volume] = WeakKeyDictionary()
        self._view = View.OUTPUT
        self._map: Volume | None = None
        """A map of noise that is shown in place of the output."""
        self._wanted_gain: int | None = None
        self.viewer = VolumeViewer(self)
        self.components = Components()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.viewer)
        self.components.chosen.connect(self._show)
        self.components.reordered.connect(self.open)

    def open(self, volumes: Sequence[Volume], truth: Sequence[Volume] = ()) -> None:
        """Show `volumes` as one scan, if they are of one head.

        Parameters
        ----------
        truth : sequence of Volume
            What they are without noise, where that is known; one for each.
        """

        self._wanted = tuple(volumes)

        def stack() -> tuple[Scan, list[Window]]:
            scan = Scan(tuple(volumes))
            _ = scan.planes  # takes a while, and refuses volumes that do not match
            return scan, [auto_window(volume) for volume in volumes]

        def show(stacked: tuple[Scan, list[Window]]) -> None:
            scan, windows = stacked
            for volume, window in zip(volumes, windows, strict=True):
                self.viewer.know_window(volume, window)
            self._truths.update(zip(volumes, truth, strict=False))
            self._show_scan(scan, None)

        def failed(error: Exception) -> None:
            self._wanted = ()
            if self.scan is not None:
                self._wanted = self.scan.volumes
                self.components.show_volumes(self.scan.volumes)
            self._report(error)

        self._background.start("scan", stack, show, failed)

    def add(self, volume: Volume) -> None:
        """Filter `volume` together with those that are open."""
        self.open([*self._wanted, volume])

    def request(self, filter_id: str, **arguments: Any) -> Request:
        """Return a checked request for the scan; the arguments are those of `Request.create`.

        A filter of pictures runs on the slices of the plane that is shown alone, or else on
        those across z.

        Raises
        ------
        InvalidParameter
            As `Request.create` and `by_slices`.
        """
        assert self.scan is not None
        if filters.get(filter_id).kind is Kind.VOLUME:
            return Request.create(self.scan, filter_id, **arguments)
        return by_slices(self.scan, filter_id, axis=self._slice_axis, **arguments)

    def slice_to_filter(self) -> Image:
        """Return one of the slices that a filter of pictures would get, under the crosshair."""
        assert self.scan is not None
        volume, axis = self.scan.volumes[self.components.current], self._slice_axis
        return picture_of(volume, axis, self.viewer.position[axis])

    @property
    def _slice_axis(self) -> int:
        alone = self.viewer.plane_number
        return 0 if alone is None else self.viewer.planes[alone].axis

    def show_result(self, result: Result) -> None:
        """Show what came of a run, and the scan that it was made from."""
        self._show_scan(result.request.scan, result)

    def use_output(self) -> None:
        """Make the output the new input."""
        if self.result is not None:
            volumes = self.result.scan.volumes
            for old, new in zip(self.result.request.scan.volumes, volumes, strict=True):
                if old in self._truths:
                    self._truths[new] = self._truths[old]
            self.open(volumes)

    def set_view(self, view: View, gain: int | None) -> None:
        """Show the output or a difference; without a `gain` the one that shows most."""
        self._view, self._wanted_gain = view, gain
        if self.scan is not None:
            self._show_output()

    def show_noise(self, parameters: Mapping[str, Any], tell: Callable[[str], None]) -> None:
        """Show sigma around each voxel of the input on the right, until something else is.

        Parameters
        ----------
        parameters : mapping
            Those of a filter; what it says about noise counts.
        """
        assert self.scan is not None
        volume = self.scan.volumes[self.components.current]
        window = parameters.get("window_radius", 1)
        rician = parameters.get("noise", "rician") == "rician"
        deep = parameters.get("dimensions", "3d") == "3d"

        def work() -> Volume:
            sigma = estimate_local(volume.voxels, window, rician, deep)
            noise = volume.with_voxels(sigma, as_float=True)
            return replace(noise, title=f"{_stem(volume)}-noise")

        def show(noise: Volume) -> None:
            if self.scan is None or volume is not self.scan.volumes[self.components.current]:
                return
            low, middle, high = np.percentile(noise.voxels[::2, ::2, ::2], (5, 50, 95)).tolist()
            kind = "Rician" if rician else "Gaussian"
            text = f"{kind} sigma around each voxel, window radius {window}"
            figures = f"median {middle:.4g}, mostly {low:.4g} to {high:.4g}"
            self._map = noise
            shades = auto_window(noise)
            self.viewer.show_output(noise, f"Noise: {text}, {figures}", window=shades)
            self.drawn.emit(None, True)
            tell(f"{text}: {figures}.")

        self._background.start("noise", work, show, self._report)

    def judge(self, panel: QualityPanel) -> None:
        """Compare what is shown with the truth, if that is known, and count the values."""
        if self.scan is None:
            return
        volume = self.scan.volumes[self.components.current]
        output, truth = self.shown_output, self._truths.get(volume)

        def show(answer: tuple[Judged, dict[str, Histogram]]) -> None:
            judged, histograms = answer
            panel.show_judged(truth.title if truth else "", "the truth", judged, f"{NO_TRUTH}.")
            panel.show_histograms(histograms)

        self._background.start(
            "judge", lambda: judge_volumes(volume, output, truth), show, self._report
        )

    @property
    def shown_output(self) -> Volume | None:
        """The component of the output that is shown."""
        return self.result.scan.volumes[self.components.current] if self.result else None

    def change(self) -> Volume:
        """Return the residual, difference or map that is shown as a volume, not amplified.

        Takes a while: call it off the GUI thread.
        """
        if self._map is not None:
            return self._map
        output, other = self.shown_output, self._other()
        assert output is not None
        assert other is not None
        title = f"{_stem(other)}-{self._view}"
        change = output.voxels.astype(np.float32) - other.voxels
        return replace(output.with_voxels(change, as_float=True), title=title)

    def _other(self) -> Volume | None:
        """Return what is subtracted from the output."""
        assert self.scan is not None
        volume = self.scan.volumes[self.components.current]
        return volume if self._view is View.RESIDUAL else self._truths.get(volume)

    def slice_as_picture(self) -> Image | None:
        """Return the slice that was clicked last as it is drawn, for the filters of pictures.

        Bytes stay as they are; other values become floats, 0 what is drawn black and 1 what
        is drawn white.
        """
        if self.scan is None:
            return None
        volume, plane, index = self.viewer.active
        volume = volume or self.scan.volumes[self.components.current]
        title = f"{volume.title}, {plane.name.lower()} {index + 1}"
        cut = plane.cut(volume.voxels, index)
        if cut.dtype == np.uint8:
            return Image.from_array(cut.copy(), title)
        window = self.viewer.window_
        high = window.low + window.width
        notice = f"Values from {window.low:.4g} to {high:.4g} became 0 to 1."
        return Image.from_array(window.share(cut), title, notices=(notice,))

    def _show_scan(self, scan: Scan, result: Result | None) -> None:
        self.scan, self.result = scan, result
        self._wanted = scan.volumes
        self.components.show_volumes(scan.volumes)
        self._show()
        self.opened.emit()

    def _show(self) -> None:
        """Show the component that is chosen."""
        assert self.scan is not None
        volume = self.scan.volumes[self.components.current]
        self.viewer.show_input(volume, f"Input: {volume.describe()}")
        self._show_output()

    def _show_output(self) -> None:
        self._map = None
        output = self.shown_output
        if output is None or self.result is None:
            self.viewer.show_output(None)
            self.drawn.emit(None, False)
            return
        if self._view is View.OUTPUT:
            self.viewer.show_output(output, f"Output: {self.result.describe()}")
            self.drawn.emit(None, False)
            return
        other = self._other()
        if other is None:
            self.viewer.show_output(None, "Difference", hint=NO_TRUTH)
            self.drawn.emit(None, False)
            return
        gain = self._wanted_gain or auto_gain(output, other, self.viewer.window_, GAINS)
        minus = "input" if self._view is View.RESIDUAL else "truth"
        caption = f"{self._view.value.capitalize()}: output – {minus}, ×{gain}"
        self.viewer.show_output(output, caption, minus=other, gain=gain)
        self.drawn.emit(gain, True)


def _stem(volume: Volume) -> str:
    return volume.title.removesuffix(".gz").removesuffix(".nii")
