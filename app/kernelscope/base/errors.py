"""Failures that the user can do something about.

Everything that is expected to go wrong (a bad file, a wrong parameter, no GPU) is an
`AppError`; the window and the command line show its text, in which control characters that
came from a file are escaped. Any other exception is a bug
and is reported as one, with the full log.
"""

from __future__ import annotations

from typing import Self

from kernelscope.base.text import printable


class AppError(Exception):
    """An expected failure: its cause and the way out.

    The message names the file or the value, in one plain sentence; the hint is for the user.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        self.message, self.hint = printable(message), printable(hint)
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".rstrip()

    def prefixed(self, prefix: str) -> Self:
        message = printable(f"{prefix}{self.message}")
        error = type(self).__new__(type(self), message)  # subclasses have other parameters
        error.__dict__.update(self.__dict__, message=message)
        return error


class naming:  # noqa: N801 - a block; a generator would take twice as long in each call
    """Put a prefix, if it is not empty, before the message of an `AppError` of the block."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._prefix and isinstance(error, AppError):
            raise error.prefixed(self._prefix) from error


class InvalidParameter(AppError):
    """A filter parameter outside the range that the filter allows."""


class UnknownName(InvalidParameter):
    """A filter, level, preset, device or library that does not exist on any machine.

    On the command line this is wrong usage, and not a problem of the input or the machine.
    """


class InvalidRecipe(AppError):
    """A recipe that cannot be read, or that has an impossible step."""


class InvalidImage(AppError):
    """Pixels of a type or shape that no filter accepts, or that are not finite."""


class NotANumber(InvalidImage):
    """Samples that are NaN, and no number was chosen to replace them."""


class Incomparable(AppError):
    """A result and a reference that differ in size, type or channels."""


class ImageReadError(AppError):
    """A file that cannot be opened as an image."""


class TooLarge(ImageReadError):
    """A file with more pixels than are opened as a whole."""


class SeveralVolumes(ImageReadError):
    """A file or folder with several volumes, and none was chosen.

    - `names`: the volumes to choose from, numbered from 1.
    - `alike`: they are volumes of one grid in one file, such as time points.
    - `what`: kind of the items: "volume", "channel", "series".
    """

    def __init__(
        self,
        message: str,
        hint: str,
        names: tuple[str, ...],
        *,
        alike: bool = False,
        what: str = "volume",
    ) -> None:
        super().__init__(message, hint)
        self.names, self.alike = tuple(map(printable, names)), alike
        self.what = what


class ImageWriteError(AppError):
    """An image that cannot be written to the chosen file or in the chosen format."""


class LossyFormat(ImageWriteError):
    """Writing would lose bit depth, alpha or colour, and the user has not agreed to that."""


class DeviceUnavailable(AppError):
    """The chosen device or level cannot be used on this machine."""


class OutOfMemory(AppError):
    """The host or the device has too little memory for the request."""


class NoRoomToCompile(OutOfMemory):
    """The process may not use as many addresses as the compiler takes, whatever the picture."""


class Cancelled(Exception):
    """Raised inside a run when its `CancelToken` was set; never shown as a failure."""
