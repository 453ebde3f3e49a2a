"""Volumes in the window: the scan that is open, what came of it, and what of both is seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from kernelscope import filters
from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.engine.slices import picture_of
from kernelscope.files.names import stem_of
from kernelscope.filters.mri_nlm.sigma import estimate_local
from kernelscope.filters.mri_nlm.sigma_map import estimate_smooth
from kernelscope.gui.canvas.volume_viewer import VolumeViewer
from kernelscope.gui.model.comparison import NO_REFERENCE, Judged, View
from kernelscope.gui.model.form_state import FormState
from kernelscope.gui.model.history import History, Moment, Origin, Reference
from kernelscope.gui.model.volume_judging import following, judge_volumes
from kernelscope.gui.panels.quality_panel import QualityPanel
from kernelscope.gui.panels.volume_components import Components
from kernelscope.gui.work.background import Background
from kernelscope.images.image import Image
from kernelscope.images.planes import Window, auto_gain, auto_window
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume, check_reference
from kernelscope.judging.gains import GAINS
from kernelscope.judging.histogram import Histogram
from kernelscope.spec.samples import Kind


class VolumePage(QWidget):
    """Takes the place of the pictures while a scan is open.

    Attributes
    ----------
    history : History
        The scans that were filtered, and which of them is shown.
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
        self.history: History[Scan] = History()
        self._wanted: tuple[Volume, ...] = ()
        """What is being opened, or is open."""
        self._view = View.OUTPUT
        self._map: Volume | None = None
        """A map of noise that is shown in place of the output."""
        self._map_made_with: tuple[Any, ...] = ()
        self._wanted_gain: int | None = None
        self.viewer = VolumeViewer(self)
        self.components = Components()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.viewer)
        self.components.chosen.connect(self._show)
        self.components.reordered.connect(lambda volumes: self.open(volumes, name="Components"))

    @property
    def scan(self) -> Scan | None:
        """What is filtered next."""
        return self.history.current.source if self.history.current else None

    @property
    def result(self) -> Result | None:
        """The last run on it."""
        return self.history.current.result if self.history.current else None

    def open(
        self, volumes: Sequence[Volume], truth: Sequence[Volume] = (), *, name: str = ""
    ) -> None:
        """Show `volumes` as one scan, if they are of one head.

        Parameters
        ----------
        truth : sequence of Volume
            What they are without noise, where that is known; one for each.
        name : str
            What this is called, to be taken back.
        """
        self._wanted = tuple(volumes)

        def show(stacked: tuple[Scan, list[Window]]) -> None:
            scan, windows = stacked
            self._cache_windows(scan, windows)
            references = self._references(volumes, truth)
            steps = self._steps(volumes)
            self._go_on(Moment(scan, name or f"Open {scan.title}", steps, references=references))

        def failed(error: Exception) -> None:
            self._wanted = ()
            if self.scan is not None:
                self._wanted = self.scan.volumes
                self.components.show_volumes(self.scan.volumes)
            self._report(error)

        def stack() -> tuple[Scan, list[Window]]:
            scan = Scan(tuple(volumes))
            return scan, _look_at(scan)

        self._background.start("scan", stack, show, failed)

    def add(self, volume: Volume) -> None:
        """Filter `volume` together with those that are open."""
        self.open([*self._wanted, volume], name=f"Add {volume.title}")

    def request(self, filter_id: str, **arguments: Any) -> Request:
        """Return a checked request for the scan; the arguments are those of `Request.create`.

        A filter of pictures runs on the slices of the plane that is shown alone, or else on
        those across z.

        Raises
        ------
        InvalidParameter
            As `Request.create`.
        """
        assert self.scan is not None
        axis = self._slice_axis if filters.get(filter_id).kind is Kind.PICTURE else 0
        return Request.create(self.scan, filter_id, axis=axis, **arguments)

    def slice_to_filter(self) -> Image:
        """Return one of the slices that a filter of pictures would get, under the crosshair."""
        assert self.scan is not None
        volume, axis = self.scan.volumes[self.components.current], self._slice_axis
        return picture_of(volume, axis, self.viewer.position[axis])

    @property
    def _slice_axis(self) -> int:
        alone = self.viewer.plane_number
        return 0 if alone is None else self.viewer.planes[alone].axis

    def is_current(self, result: Result) -> bool:
        """Tell whether a run would filter the same slices as that of `result`, if it did slices."""
        request = result.request
        return not request.by_slices or request.step.axis == self._slice_axis

    @property
    def shows_map(self) -> bool:
        """Whether a map of the noise is shown in place of the output."""
        return self._map is not None

    def is_map_current(self, parameters: Mapping[str, Any]) -> bool:
        """Tell whether `show_noise` would make the map that is shown with these parameters."""
        return self._map_made_with == _of_noise(parameters)

    def show_result(self, result: Result) -> None:
        """Show what came of a run, and the scan that it was made from."""
        if result.request.scan is self.scan:
            self.history.amend(result=result)
            self.show_moment()
            return
        known = self.history.moment_of(result.request.scan)
        moment = known or Moment(result.request.scan, "")
        self._go_on(replace(moment, name="Earlier Run", result=result))

    def use_output(self) -> None:
        """Make the output the new input, unless something else is shown by then."""
        moment = self.history.current
        if moment is None or moment.result is None:
            return
        new = following(moment)

        def show(windows: list[Window]) -> None:
            if self.scan is moment.source:
                self._cache_windows(new.source, windows)
                self._go_on(new)

        self._background.start("use", lambda: _look_at(new.source), show, self._report)

    def go_on_unseen(self, result: Result) -> Scan:
        """Make `result` of the current scan the next input; `show_moment` shows what followed."""
        self.history.amend(result=result, form=FormState.of(result.request))
        assert self.history.current is not None
        moment = following(self.history.current)
        self.history.push(moment)
        return moment.source

    def show_moment(self) -> None:
        """Show the scan that is current, and what came of it."""
        assert self.scan is not None
        self._wanted = self.scan.volumes
        self.components.show_volumes(self.scan.volumes)
        self._show()
        self.opened.emit()

    @property
    def reference(self) -> Reference[Volume] | None:
        """What the volume that is shown is judged by."""
        moment = self.history.current
        return moment.references.get(self._volume) if moment is not None else None

    def set_reference(self, volume: Volume | None) -> None:
        """Judge the volume that is shown by another one, or no longer.

        Raises
        ------
        Incomparable
            If they differ in size.
        """
        moment = self.history.current
        assert moment is not None
        references = {each: moment.references[each] for each in moment.references}
        references.pop(self._volume, None)
        if volume is not None:
            check_reference(self._volume, volume)
            references[self._volume] = Reference(volume, Origin.CHOSEN)
        self.history.amend(references=references)
        self._show_output()

    def use_input_as_reference(self) -> None:
        """Judge what comes of the volume that is shown by the volume itself."""
        self.set_reference(self._volume)

    @property
    def is_behind(self) -> bool:
        """Whether the scan that is current has not been shown yet."""
        return self.scan is not None and self.viewer.input.volume not in self.scan.volumes

    def output_name(self, volume: Volume) -> str:
        """Return what to call a volume of the output in a file, without suffix."""
        assert self.result is not None
        return f"{stem_of(volume)}-{self.result.request.step.filter.id}"

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
        volume = self._volume
        made_with = window, rician, deep = _of_noise(parameters)

        def work() -> Volume:
            if window is None:
                sigma = estimate_smooth(volume.voxels, rician, deep)
            else:
                sigma = estimate_local(volume.voxels, window, rician, deep)
            noise = volume.with_voxels(sigma, as_float=True)
            return replace(noise, title=f"{stem_of(volume)}-noise")

        def show(noise: Volume) -> None:
            if volume is not self._volume:
                return
            low, middle, high = np.percentile(noise.voxels[::2, ::2, ::2], (5, 50, 95)).tolist()
            kind = "Rician" if rician else "Gaussian"
            text = f"{kind} sigma around each voxel"
            text += ", smooth map" if window is None else f", window radius {window}"
            figures = f"median {middle:.4g}, mostly {low:.4g} to {high:.4g}"
            self._map, self._map_made_with = noise, made_with
            shades = auto_window(noise)
            self.viewer.show_output(noise, f"Noise: {text}, {figures}", window=shades)
            self.drawn.emit(None, True)
            tell(f"{text}: {figures}.")

        self._background.start("noise", work, show, self._report)

    def judge(self, panel: QualityPanel) -> None:
        """Compare what is shown with its reference, if there is one, and count the values."""
        if self.scan is None:
            return
        volume, output, reference = self._volume, self.shown_output, self.reference
        image, origin = (reference.image, reference.origin) if reference else (None, "")

        if image is not None:
            panel.show_comparing(image.title)

        def show(answer: tuple[Judged, dict[str, Histogram]]) -> None:
            judged, histograms = answer
            panel.show_judged(image.title if image else "", origin, judged)
            panel.show_histograms(histograms)

        self._background.start(
            "judge", lambda: judge_volumes(volume, output, image), show, self._report
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
        return replace(output.minus(other), title=f"{stem_of(other)}-{self._view}")

    def _other(self) -> Volume | None:
        """Return what is subtracted from the output."""
        if self._view is View.RESIDUAL:
            return self._volume
        return self.reference.image if self.reference else None

    @property
    def _volume(self) -> Volume:
        """The component of the input that is shown."""
        assert self.scan is not None
        return self.scan.volumes[self.components.current]

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

    def _go_on(self, moment: Moment[Scan]) -> None:
        """Show `moment`, so that the one before can be come back to."""
        self.history.push(moment)
        self.show_moment()

    def _cache_windows(self, scan: Scan, windows: Sequence[Window]) -> None:
        for volume, window in zip(scan.volumes, windows, strict=True):
            self.viewer.control.cache_window(volume, window)

    def _references(
        self, volumes: Sequence[Volume], truth: Sequence[Volume]
    ) -> dict[Volume, Reference[Volume]]:
        """Return what new volumes are judged by: a chosen reference may be meant for them too."""
        if truth:
            truths = (Reference(volume, Origin.TRUTH) for volume in truth)
            return dict(zip(volumes, truths, strict=True))
        old = self.history.current.references if self.history.current else {}
        references = {volume: old[volume] for volume in volumes if volume in old}
        shown = self.reference if self.scan else None
        if shown and shown.origin in (Origin.CHOSEN, Origin.KEPT) and len(volumes) == 1:
            (volume,) = volumes
            if volume.voxels.shape == shown.image.voxels.shape:
                references.setdefault(volume, Reference(shown.image, Origin.KEPT))
        return references

    def _steps(self, volumes: Sequence[Volume]) -> tuple[Request, ...]:
        """Return what led to `volumes`, where that is the same for all of them."""
        moment = self.history.current
        of_this = moment is not None and set(volumes) <= set(moment.source.volumes)
        return moment.steps if moment is not None and of_this else ()

    def _show(self) -> None:
        """Show the component that is chosen."""
        moment = self.history.current
        assert moment is not None
        details = ", ".join(filter(None, (self._volume.describe(), moment.describe_steps())))
        self.viewer.show_input(self._volume, f"Input: {details}")
        self._show_output()

    def _show_output(self) -> None:
        self._map = None
        output = self.shown_output
        if output is None or self.result is None:
            self.viewer.show_output(None)
            self.drawn.emit(None, False)
            return
        if self._view is View.OUTPUT:
            # Where it ran comes first here: what a narrow window cuts off is the end.
            caption = f"Output: {self.result.where}, {self.result.settings}"
            brief = f"Output: {self.result.where}, {self.result.brief_settings}"
            self.viewer.show_output(output, caption, brief=brief)
            self.drawn.emit(None, False)
            return
        other = self._other()
        if other is None:
            self.viewer.show_output(None, "Difference", hint=NO_REFERENCE)
            self.drawn.emit(None, False)
            return
        gain = self._wanted_gain or auto_gain(output, other, self.viewer.window_, GAINS)
        minus = "input" if self._view is View.RESIDUAL else "reference"
        caption = f"{self._view.value.capitalize()}: output – {minus}, ×{gain}"
        self.viewer.show_output(output, caption, minus=other, gain=gain)
        self.drawn.emit(gain, True)


def _of_noise(parameters: Mapping[str, Any]) -> tuple[int | None, bool, bool]:
    """Return what a map of noise depends on: radius of windows, if any, Rician, and 3-D."""
    window = parameters["window_radius"] if parameters.get("sigma_from") == "local" else None
    rician = parameters.get("noise", "rician") == "rician"
    return window, rician, parameters.get("dimensions", "3d") == "3d"


def _look_at(scan: Scan) -> list[Window]:
    """Return how volumes are shown at first, once they are ready to be filtered.

    Takes a while; raises `AppError` if they are not of one head.
    """
    _ = scan.planes
    return [auto_window(volume) for volume in scan.volumes]
