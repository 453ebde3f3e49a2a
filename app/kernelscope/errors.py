"""The failures a user can do something about.

Everything that is expected to go wrong (a bad file, a wrong parameter, no GPU) is an
`AppError`; the window and the command line show its text. Any other exception is a bug
and is reported as one, with the full log.
"""


class AppError(Exception):
    """An expected failure, with its cause and the way out.

    Parameters
    ----------
    message : str
        What went wrong, in one plain sentence that names the file or the value.
    hint : str, optional
        What the user can do about it.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".rstrip()


class InvalidParameter(AppError):
    """A filter parameter outside what the filter allows."""


class InvalidRecipe(AppError):
    """A recipe that cannot be read, or with a step that cannot be."""


class InvalidImage(AppError):
    """Pixels that no filter can work on: wrong type, wrong shape, not finite."""


class NotANumber(InvalidImage):
    """Samples that are NaN, for which nobody gave a number yet."""


class Incomparable(AppError):
    """Two pictures of different size, type or channels, of which one should judge the other."""


class ImageReadError(AppError):
    """A file that cannot be opened as an image."""


class SeveralVolumes(ImageReadError):
    """A file or a folder of several volumes, of which nobody chose one yet.

    Attributes
    ----------
    names : tuple of str
        What there is to choose from; the first one has number 1.
    """

    def __init__(self, message: str, hint: str, names: tuple[str, ...]) -> None:
        super().__init__(message, hint)
        self.names = names


class ImageWriteError(AppError):
    """An image that cannot be written where, or as what, the user asked."""


class LossyFormat(ImageWriteError):
    """Writing would lose bit depth, alpha or colour, and nobody agreed to that yet."""


class DeviceUnavailable(AppError):
    """The chosen device or memory level cannot be used on this machine."""


class OutOfMemory(AppError):
    """The host or the device has too little memory for the request."""


class Cancelled(Exception):
    """Raised inside a run when its `CancelToken` was set; never shown as a failure."""
