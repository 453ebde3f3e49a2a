"""The ways out of a batch's failures, in the words of the interface that runs it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Hints:
    """Hints of failures; by default those of the command line.

    Attributes
    ----------
    own_input : str
        A result would replace its own input.
    there : str
        A file of the name of a result is there.
    earlier : str
        The output folder has a journal, and it was not to be resumed.
    other_recipe : str
        The journal is that of another recipe.
    memory : str
        There is not enough memory.
    blocks : str
        The file is read in blocks only.
    """

    own_input: str = "Choose another --out."
    there: str = "Add --overwrite, or move it."
    earlier: str = "Go on with --resume, begin again with --overwrite, or choose another folder."
    other_recipe: str = "Choose another folder, or leave out --resume and add --overwrite."
    memory: str = "Use fewer --jobs, close other programs, or filter it with “apply --memory”."
    blocks: str = "Filter it with “apply --memory 2G”."


COMMAND_LINE = Hints()
