"""The lecture: short pages on how memory decides the speed of a filter, with live pictures.

Each page is data, a `LecturePage`, in a module of its own: text, controls declared as parameters,
and a function that maps the user's picture and the values of the controls to a drawing and numbers.
Numbers come from the launch plans of the filters, from closed forms, from the data sheets of
`traffic.gpus`, from runs of the program's own code on the picture, and from recorded figures; each
`NamedNumber` names its origin. Free of Qt.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kernelscope.teach.lecture import (
    blocks,
    borders,
    coalescing,
    constant,
    medians,
    memory,
    nlm,
    occupancy,
    several,
    textures,
    tiles,
    transfers,
)
from kernelscope.teach.lecture.page import (
    Count,
    LecturePage,
    LectureSubject,
    MeasuredTime,
    NamedNumber,
    NumberOrigin,
    Shown,
)

PAGES: Mapping[str, LecturePage] = MappingProxyType(
    {
        each.PAGE.id: each.PAGE
        for each in (
            memory,
            blocks,
            coalescing,
            constant,
            tiles,
            textures,
            occupancy,
            transfers,
            borders,
            medians,
            nlm,
            several,
        )
    }
)
"""The pages in their order, by id."""

__all__ = [
    "PAGES",
    "Count",
    "LecturePage",
    "LectureSubject",
    "MeasuredTime",
    "NamedNumber",
    "NumberOrigin",
    "Shown",
]
