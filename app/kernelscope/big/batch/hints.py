"""The ways out of a batch's failures, in the words of the interface that runs it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Hints:
    """Hints of failures; by default those of the command line."""

    own_input: str = "Choose another --out."
    """A result would replace its own input."""
    there: str = "Add --overwrite, or move it."
    """A file of the name of a result is there."""
    earlier: str = "Go on with --resume, begin again with --overwrite, or choose another folder."
    """The output folder has a journal, and it was not to be resumed."""
    other_recipe: str = "Choose another folder, or leave out --resume and add --overwrite."
    """The journal is that of another recipe."""
    memory: str = "Use fewer --jobs, close other programs, or filter it with “apply --memory”."
    """There is not enough memory."""
    blocks: str = "Filter it with “apply --memory 2G”."
    """The file is read in blocks only."""


COMMAND_LINE = Hints()
