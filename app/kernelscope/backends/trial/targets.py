"""Identifiers of the places where an edited kernel can be tried."""

from __future__ import annotations

COMPILE_ONLY = "compile"
"""NVRTC compiles it for the architectures of the compile report; nothing runs."""

EMULATED = "emulated"
"""It runs on the emulated GPU, next to the program's own kernel."""

CARD = "card"
"""It runs on the first GPU, next to the program's own kernel and other levels, and is timed."""

CHECKED = "checked"
"""It runs on the emulated GPU, which looks at every access to memory."""

TRACED = "traced"
"""A pixel of its result is traced on the emulated GPU."""
