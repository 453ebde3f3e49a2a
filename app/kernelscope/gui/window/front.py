"""The pages of the window, one of which is in front."""

from __future__ import annotations

from typing import Any

from kernelscope.gui.pages.page import Page


class Pages:
    """The pages of the window.

    Parameters
    ----------
    pages : Page
        The first one is in front at the start.

    Attributes
    ----------
    all : tuple of Page
    front : Page
        The page that is shown, whose input is filtered.
    """

    def __init__(self, *pages: Page[Any, Any]) -> None:
        self.all = pages
        self.front = pages[0]

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

    def switch(self) -> None:
        """Show the input of the other page again, if it has one."""
        if self.other.source is not None:
            self.other.show_moment()
