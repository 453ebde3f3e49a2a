"""Counts of the emulated GPU: the accesses that the kernels of some levels really make."""

from __future__ import annotations

from kernelscope import filters
from kernelscope.backends.emulator.tracing import Tracer
from kernelscope.engine.request import Request
from kernelscope.images.image import Image
from kernelscope.schema.devices import Device
from kernelscope.teach.lecture.page import Count, LectureSubject, NamedNumber, NumberOrigin
from kernelscope.traffic.table import figures

_SIDE = 128  # pixels of the part that the kernels run on: they are counted in about a second


def count(wanted: Count, subject: LectureSubject) -> tuple[NamedNumber, ...]:
    """Run kernels on a detail of the picture; return their accesses for each pixel.

    Raises `AppError` if there is no compiler for the emulated GPU.
    """
    part, *_ = subject.part(_SIDE, _SIDE)
    offered = {each.id: each for each in filters.get(wanted.filter_id).levels(Device.GPU)}
    source = Image.from_array(part.copy(), subject.title)
    tracer = Tracer()
    try:
        made = {}
        for level_id in wanted.levels:
            level = offered[level_id]
            request = Request.create(
                source, wanted.filter_id, wanted.parameters, level=level_id, block=wanted.block
            )
            made[level.name] = tracer.count(request, level)
    finally:
        tracer.close()
    return tuple(
        NamedNumber(f"{name}: {figure.title} a pixel", text, NumberOrigin.EMULATED)
        for figure in figures(made)
        if figure.title in wanted.titles
        for name, value, text in zip(made, figure.values, figure.texts(), strict=True)
        if value is not None
    )
