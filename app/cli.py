"""The command line."""

from __future__ import annotations


def main() -> int:
    """Replaced by the command-line work."""
    return 0
