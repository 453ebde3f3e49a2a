"""Kernelscope: image filtering and denoising on the CPU and with CUDA, side by side.

As a library::

    import kernelscope as ks

    smooth = ks.median(image, size=5, border="mirror")

The functions are those of `kernelscope.library`, which is imported when the first one is used.
"""

import importlib
import importlib.util
import sys

__version__ = "0.1.0"


def __getattr__(name):
    """Return a member of the library: a filter, ``Recipe``, ``quality``.

    A submodule is none: the import system asks for its name here before it imports it.
    """
    if not name.startswith("_") and importlib.util.find_spec(f"{__name__}.{name}") is None:
        # By name: modules that import this package must not depend on the library above them.
        member = importlib.import_module(f"{__name__}.library").member(name)
        if member is not None:
            return globals().setdefault(name, member)  # another thread may have been faster
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message, name=name, obj=sys.modules[__name__])


def __dir__():
    """Return the names of the library's members as well, for completion."""
    return sorted({*globals(), *importlib.import_module(f"{__name__}.library").names()})
