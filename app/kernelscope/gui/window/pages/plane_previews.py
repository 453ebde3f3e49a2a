"""Slices of an output that were computed before a run, in the planes of the view of volumes."""

from __future__ import annotations

from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.gui.model.projection import Projection
from kernelscope.gui.model.run_settings import RunSettings
from kernelscope.gui.model.slice_previews import SlicePreviews, place_of
from kernelscope.gui.viewer.volume_viewer import VolumeViewer
from kernelscope.images.volume import Volume
from kernelscope.schema.crop import Box


class PlanePreviews:
    """Keeps slices, and shows those that are in view."""

    def __init__(self, viewer: VolumeViewer) -> None:
        self._viewer = viewer
        self.kept = SlicePreviews()

    def __bool__(self) -> bool:
        return bool(self.kept)

    def clear(self) -> None:
        """Forget all slices; those on the screen stay until the output is drawn."""
        self.kept.clear()

    def put(self, result: Result) -> bool:
        """Keep a slice or a part of one; return whether the result is one."""
        return self.kept.put(result)

    def missing(self, request: Request) -> tuple[Box, ...]:
        """Return the slices in view of the result of `request` that are not there as a whole."""
        places = self._in_view(request)
        found = [self.kept.of(request, axis, index) for axis, index in places]
        return tuple(
            Box.slice_of(request.source.shape, axis, index)
            for (axis, index), preview in zip(places, found, strict=True)
            if preview is None or preview.part is not None
        )

    def part_of(self, request: Request) -> Box | None:
        """Return the part that is there of the slice of a request, with its settings."""
        place = place_of(request)
        found = self.kept.of(request, *place) if place is not None else None
        return found.part if found is not None else None

    def describe(self, shown: Request) -> str:
        """Return how much of the slices in view is there with the settings of `shown`."""
        viewer = self._viewer
        places = [(plane.axis, viewer.position[plane.axis]) for plane in viewer.visible_planes]
        found = [each for each in (self.kept.of(shown, *place) for place in places) if each]
        parts = sum(each.part is not None for each in found)
        count = "" if len(found) == len(places) else f"{len(found)} of {len(places)} "
        size = "×".join(str(side) for side in reversed(shown.whole_shape[:3]))
        words = f"{count}slices in view" if len(places) > 1 else "slice in view"
        if parts:
            words += f", {parts} in part" if len(places) > 1 else " in part"
        return f"{words}, of {size} voxels"

    def shows(self, request: Request) -> bool:
        """Return whether the slice of a request is in view."""
        place = place_of(request)
        return place is None or place in self._in_view(request)

    def _in_view(self, request: Request) -> list[tuple[int, int]]:
        """Return axis and index of the slices in view that can be computed without the whole."""
        viewer = self._viewer
        if viewer.look.projection is not Projection.SLICE or request.then or not request.has_boxes:
            return []
        axes = [plane.axis for plane in viewer.visible_planes]
        if request.by_slices:
            axes = [axis for axis in axes if axis == request.step.axis]
        return [(axis, viewer.position[axis]) for axis in axes]

    def show(self, component: int) -> Request | None:
        """Show the slices in view, of whatever settings; return the request of the last one."""
        viewer = self._viewer
        places = {plane.axis: viewer.position[plane.axis] for plane in viewer.visible_planes}
        slices: dict[int, tuple[int, Volume, Box | None]] = {}
        last = None
        for preview in self.kept:  # the last one that was computed comes last
            axis, index = place_of(preview.request) or (-1, -1)
            if places.get(axis) == index:
                slices[axis] = index, preview.volumes[component], preview.part
                last = preview.result
        if last is None:
            return None
        caption = f"Preview: {last.where}, {last.settings}"
        viewer.show_previews(slices, caption, f"Preview: {last.caption}")
        return last.request

    def mark_earlier(self, whole: Request | None, settings: RunSettings | None) -> None:
        """Mark the planes in view that show earlier settings, where others show a preview.

        Parameters
        ----------
        whole : Request, optional
            That of the output under the slices.
        """
        viewer = self._viewer
        earlier = set()
        for plane in viewer.visible_planes:
            preview = self.kept.at(plane.axis, viewer.position[plane.axis])
            request = preview.request if preview is not None else whole
            if request is not None and not (settings and settings.made(request)):
                earlier.add(plane.axis)
        viewer.mark_earlier(frozenset(earlier))
