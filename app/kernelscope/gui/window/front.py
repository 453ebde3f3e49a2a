"""The pages of the window, one of which is in front."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kernelscope.gui.widgets import commands
from kernelscope.gui.widgets.commands import Action
from kernelscope.gui.window.pages.page import Page
from kernelscope.gui.window.pages.picture_page import PicturePage
from kernelscope.gui.window.pages.volume_page import VolumePage


class Pages:
    """The pages of the window.

    Parameters
    ----------
    pictures : PicturePage
        In front at the start.
    volumes : VolumePage

    Attributes
    ----------
    all : tuple of Page
    watchers : list of callable
        Called when another page is in front.
    front : Page
        The page that is shown, whose input is filtered.
    """

    def __init__(self, pictures: PicturePage, volumes: VolumePage) -> None:
        self.pictures, self.volumes = pictures, volumes
        self.all: tuple[Page[Any, Any], ...] = (pictures, volumes)
        self.front: Page[Any, Any] = pictures
        self.watchers: list[Callable[[], None]] = []

    @property
    def other(self) -> Page[Any, Any]:
        """A page behind the one in front."""
        return next(page for page in self.all if page is not self.front)

    def for_(self, opened: object) -> Page[Any, Any]:
        """Return the page on which an opened file or the source of a result is shown."""
        return next(page for page in self.all if page.takes(opened))

    def bring_to_front(self, page: Page[Any, Any]) -> None:
        """Note that `page` is in front, and show its controls only."""
        self.front = page
        for each in self.all:
            if each.controls is not None:
                each.controls.setVisible(each is page)
        for watcher in self.watchers:
            watcher()

    @Action(
        "switchKind",
        "Picture or &Volume",
        keys=("Ctrl+Shift+V",),
        tip="Switch between the open volume and the open picture",
        need=commands.OTHER,
        help="volumes",
    )
    def switch(self) -> None:
        """Show the input of the other page again, if it has one."""
        if self.other.source is not None:
            self.other.show_moment()
