"""The volumes that are filtered: components, slices, the map of their noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelscope import filters
from kernelscope.engine.request import Request, RunSettings
from kernelscope.engine.result import Result
from kernelscope.engine.slices import SliceUnit, picture_of
from kernelscope.engine.stabilising import Sigmas, change_of_volume, photon_sigmas
from kernelscope.files.names import stem_of
from kernelscope.gui.model.comparison import View, with_reference
from kernelscope.gui.model.display import Display, PaneSide, automatic_of
from kernelscope.gui.model.drawn_view import DrawnView, draw_volume
from kernelscope.gui.model.history import History, Moment, Reference, ReferenceOrigin, place_for
from kernelscope.gui.model.pipeline import kept_steps
from kernelscope.gui.model.runs import describe_result
from kernelscope.gui.model.sketches import ViewedPicture
from kernelscope.gui.model.slice_drawing import drawn_slice, resolution_of
from kernelscope.gui.model.slice_previews import SlicePreview, place_of
from kernelscope.gui.session.canvas_view import SLICES, CanvasView, Edges
from kernelscope.gui.session.subject import MAP, PART, SHOWN, Fields, Savable, Subject
from kernelscope.images.image import Image, Metadata
from kernelscope.images.levels import relevelled
from kernelscope.images.planes import Plane
from kernelscope.images.scan import MAX_COMPONENTS, Scan
from kernelscope.images.volume import Among, Volume, check_reference
from kernelscope.schema.crop import Box
from kernelscope.schema.filter import Diagnostic
from kernelscope.schema.samples import Kind

if TYPE_CHECKING:
    from kernelscope.gui.session.session import Session


class VolumeSubject(Subject[Scan, Volume]):
    """A scan, one component of which is shown, and its output."""

    kind = Kind.VOLUME
    drawn_at_once = True

    def __init__(self, session: Session) -> None:
        super().__init__(session, CanvasView(3))
        self.map_caption = ""
        self._chosen_reference: tuple[Volume, Volume] | None = None
        """A volume, and the reference that was chosen for it."""
        self.reference_problem = ""  # why that of another volume of its file could not be read
        self._map_made_with: tuple[Any, ...] = ()
        self.together: tuple[Result, ...] = ()
        """A result, and those of the other channels of a composite that live filtering made."""

    def announce(self) -> str:
        return describe_result(self.result) if self.result is not None else super().announce()

    # --- input ---

    def open_volumes(self, scan: Scan, truth: Sequence[Volume] = (), *, name: str = "") -> None:
        """Show volumes as one scan; `truth`: noise-free originals; `name`: of the step for Undo."""
        moment, before = self.opened(scan, name, truth), self.history.current
        if before is not None and set(scan.volumes) <= set(before.source.volumes):
            self.push(replace(moment, steps=before.steps, pipeline=before.pipeline))
        elif self.session.joins and not (before and set(scan.volumes) & set(before.source.volumes)):
            self._open_apart(moment)
        else:
            self.open(moment)

    def _open_apart(self, moment: Moment[Scan, Volume]) -> None:
        """Show a scan as a document of its own."""
        history: History[Scan, Volume] = History()
        history.push(self.session.with_steps(self, moment))
        self.show_history(history)

    def _together(self, parts: Sequence[Volume]) -> Scan:
        self._chosen = parts[self.component]
        return Scan(tuple(parts))

    def open_each(self, scans: Sequence[Scan]) -> None:
        """Show scans one after the other, each of several as a document of its own."""
        apart = len(scans) > 1 or self.session.joins
        for scan in scans:
            (self._open_apart if apart else self.open)(self.opened(scan))

    def show_member(self, scan: Scan, result: Result | None = None) -> None:
        """Show another volume of a file, maybe with its output by the present steps."""
        looked = self.session.with_steps(self, replace(self.opened(scan), name=""))
        with self.changing():
            self.show_steps(looked, as_step=bool(self.moment.name))
            if result is not None:
                self.show_result(result)
                self.session.show_estimates(result.request)

    def steps_of_all(self) -> tuple[RunSettings, ...]:
        """Return the steps to the output that are on, as other volumes of its file take them."""
        pipeline, base = self.pipeline, self.base
        assert pipeline is not None
        assert base is not None
        kept = kept_steps(pipeline.reopened(self.moment.steps), base, self.slice_axis)
        return tuple(each for each in kept.pipeline.steps if each.on) if kept is not None else ()

    @property
    def room(self) -> int:
        return MAX_COMPONENTS - (len(self.source.volumes) if self.source else 0)

    def set_reference(
        self, image: Volume | None, origin: ReferenceOrigin = ReferenceOrigin.CHOSEN
    ) -> None:
        if image is not None:
            check_reference(self.part, image)
        if origin is ReferenceOrigin.CHOSEN:
            self._chosen_reference = (self.part, image) if image is not None else None
            if image is self.part and self.moment.steps:  # which no file has
                self._chosen_reference = self.part, replace(image, among=(), path=None)
        self.reference_problem = ""
        super().set_reference(image, origin)

    @property
    def reference_due(self) -> tuple[Volume, tuple[Among, ...]] | None:
        """The chosen reference, and the place in its file of that of this time and channel, if
        this volume has none yet.
        """
        if self.source is None or self._chosen_reference is None or self.reference is not None:
            return None
        chosen_for, image = self._chosen_reference
        if chosen_for.path is None or chosen_for.path != self.part.path:
            return None
        place = place_for(self.part, image, chosen_for)
        return (image, place) if place is not None else None

    @property
    def reference_note(self) -> str:
        if self.source is None or self._chosen_reference is None or self.reference is not None:
            return ""
        chosen_for, image = self._chosen_reference
        if self.reference_problem or chosen_for.path != self.part.path:
            return self.reference_problem
        if self.reference_due is not None:
            return f"Reading {self.part.place} of {image.title}…"
        return f"{image.title} has no {self.part.place}: choose a reference for it."

    # --- runs ---

    def request(self, settings: RunSettings, *, of_slice: bool = False) -> Request:
        # A filter for pictures runs on the slices of the plane that is shown alone, or across z.
        scan, axis = self.moment.source, self.slice_axis
        if of_slice:
            return settings.request(picture_of(self.part, axis, self.view.position[axis]))
        if settings.step.filter.kind is Kind.PICTURE:
            settings = replace(settings, step=replace(settings.step, axis=axis))
        return settings.request(scan)

    def with_reference(self, request: Request) -> Request:
        if self.reference is None or not isinstance(request.source, Image):
            return request
        axis, unit = self.slice_axis, SliceUnit(self.part.levels.span)
        image = picture_of(self.reference.image, axis, self.view.position[axis], unit)
        return with_reference(request, Reference(image, self.reference.origin))

    def probed(self) -> tuple[int, int] | None:
        number, (column, row) = self.view.probe or (-1, (0, 0))
        voxel = self.view.position
        if number >= 0 and self.view.planes[number].axis == self.slice_axis:
            shape = self.part.voxels.shape
            voxel = self.view.planes[number].moved(voxel, column, row, shape)
        down, right = (axis for axis in range(3) if axis != self.slice_axis)
        return voxel[right], voxel[down]

    # --- slices before a run ---

    def to_draw(self, scale: float = 1.0) -> Callable[[], DrawnView | None]:
        shown, caption, output = self.map, self.map_caption, self.shown_output
        if shown is not None:
            return lambda: DrawnView(shown, own_levels=automatic_of(shown), caption=caption)
        display = self.view.displays.of(PaneSide.INPUT)
        if output is None or display is None:
            return lambda: None
        view, other, gain = self.session.view, self.subtracted, self.session.wanted_gain
        sigmas = self._residual_sigmas if view is View.RESIDUAL else None
        return lambda: draw_volume(view, output, other, gain, display.width, sigmas)

    @property
    def _residual_sigmas(self) -> Sigmas | None:
        return photon_sigmas(self.result.request, self.component) if self.result else None

    @property
    def is_earlier(self) -> bool:
        settings = self.session.settings
        if self.map is not None:
            return settings is None or not self.is_map_current(settings)
        return super().is_earlier

    def _parts_of(self, edges: Edges, request: Request) -> tuple[Box, ...]:
        """Return the slices in view, whole, that are not there as a whole."""
        places = self._in_view(request) if self._shows_output else []
        found = [self._preview(request, place) for place in places]
        return tuple(
            Box.slice_of(request.source.shape, axis, index)
            for (axis, index), preview in zip(places, found, strict=True)
            if preview is None or preview.part is not None
        )

    def _preview(self, request: Request, place: tuple[int, int]) -> SlicePreview | None:
        """Return the preview of a slice, unless it lacks channels of a composite."""
        found = self.previews.of(request, *place)
        if found is None:
            return None
        have = {each.channel_number for each in found.beside}
        others = self.requests_beside(found.request)
        wanted = {each.scan.volumes[0].channel_number for each in others}
        return found if wanted <= have else None

    def part_shown(self, request: Request) -> Box | None:
        place = place_of(request)
        found = self._preview(request, place) if place is not None else None
        return found.part if found is not None else None

    def describe_part(self, shown: Request) -> str:
        if shown.stand_in or not isinstance(shown.region, Box):
            return super().describe_part(shown)
        places = self.view.places
        found = [each for each in (self.previews.of(shown, *place) for place in places) if each]
        parts = sum(each.part is not None for each in found)
        count = "" if len(found) == len(places) else f"{len(found)} of {len(places)} "
        size = "×".join(str(side) for side in reversed(shown.whole_shape[:3]))
        if self.part.flat_axis is not None:
            return f"{'part' if parts else 'preview'} of {self.part.size} voxels"
        words = f"{count}slices in view" if len(places) > 1 else "slice in view"
        if parts:
            words += f", {parts} in part" if len(places) > 1 else " in part"
        return f"{words}, of {size} voxels"

    # --- the other channels of a composite ---

    def requests_beside(self, request: Request) -> list[Request]:
        others = [each for each, _ in self.view.look.beside if self.view.look.shows(each)]
        steps = self.steps_of_all() if others else ()
        several = request.region is not None and len(steps) > 1
        if several or len(steps) != len(self.moment.steps) + 1 + len(request.then):
            return []
        first, *then = steps
        return [
            Request(
                Scan((relevelled(each, self.levels),)),
                first.step,
                first.options,
                region=request.region,
                then=tuple(then),
            )
            for each in others
        ]

    def lacks_channels(self) -> bool:
        look = self.view.look
        pairs = zip(look.beside, look.filtered, strict=True)
        return any(raw is made and look.shows(raw) for (raw, _), (made, _) in pairs)

    def keep_beside(self, result: Result, beside: Sequence[Result]) -> None:
        with self.changing(SHOWN):
            self.together = (result, *beside)

    def show_preview(self, result: Result, beside: Sequence[Result] = ()) -> bool:
        fits = result.request.source is self.source and not self.history.then
        if not fits or not self.previews.put(result, beside) or not self.previews_in_view:
            return False
        with self.changing(PART):
            self.shown = self._on_screen()
        return True

    def _on_view(self, fields: Fields) -> None:
        if self.source is None or self.is_behind:
            fields -= {SLICES}  # of another volume
        with self.changing(*fields):
            if SLICES in fields:
                self.shown = self._on_screen()

    # --- the map of noise ---

    def show_map(self, shown: Volume, made_with: tuple[Any, ...], caption: str) -> None:
        with self.changing(MAP):
            self.map, self._map_made_with, self.map_caption = shown, made_with, caption

    def is_map_current(self, settings: RunSettings) -> bool:
        return self._map_made_with == self.map_of(settings)[1]

    def map_of(self, settings: RunSettings) -> tuple[Diagnostic, tuple[Any, ...]]:
        """Return the map that goes with settings, and the values that it depends on."""
        step, source = settings.step, self.source
        microscope = source is not None and source.microscope
        return filters.diagnostic(step.filter.id, step.parameters, microscope)

    # --- to save ---

    def difference(self) -> Callable[[], Savable] | None:
        shown, output, other = self.map, self.shown_output, self.subtracted
        sigmas = self._residual_sigmas if self.session.view is View.RESIDUAL else None
        unit = "" if sigmas is None else "-in-sigma"
        title = f"{stem_of(other)}-{self.session.view}{unit}" if other is not None else ""

        def change() -> Savable:
            if shown is not None:
                return Savable([shown], shown.title)
            assert output is not None
            assert other is not None
            made = change_of_volume(output, other, sigmas)
            return Savable([replace(made, title=title)], title)

        return change

    @property
    def active(self) -> tuple[Volume, Plane, int]:
        """The slice that was clicked last: its volume, its plane and its number."""
        view = self.view
        plane = view.planes[view.active_plane]
        of_output = view.clicked > 2 and self.shown_output is not None
        volume = self.map or self.shown_output if of_output else self.part
        return volume or self.part, plane, view.position[plane.axis]

    def scene(self) -> ViewedPicture | None:
        """Return the slice that was clicked last, in the form in which it is filtered."""
        if self.source is None:
            return None
        volume, plane, index = self.active
        image = picture_of(volume, plane.axis, index)
        return ViewedPicture(image, (image.width // 2, image.height // 2), volume, image.title)

    def display_of(self, image: Image, volume: Volume | None = None) -> Display:
        display = self.view.displays.of(PaneSide.INPUT)
        if display is None:
            return Display.automatic(image.planes)
        span = 1.0 if image.pixels.dtype == np.uint8 else (volume or self.part).levels.span
        return replace(display, low=display.low / span, high=display.high / span)

    def output_as_picture(self) -> Image | None:
        _, plane, index = self.active
        output, display = self.shown_output, self.view.display
        if output is None or display is None:
            return None
        return drawn_slice(output, plane, index, display)

    def slice_as_picture(self) -> Image | None:
        if self.source is None:
            return None
        volume, plane, index = self.active
        display = self.view.display
        assert display is not None
        if volume.voxels.dtype == np.uint16:  # pictures have this type as well
            cut = np.ascontiguousarray(plane.cut(volume.voxels, index))
            picture = Image.from_array(cut, plane.title(volume, index))
        else:
            picture = drawn_slice(volume, plane, index, display)
        resolution = resolution_of(volume, plane)
        metadata = Metadata(channel=volume.channel, resolution=resolution, measured=True)
        return replace(picture, metadata=metadata)
