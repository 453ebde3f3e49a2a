"""Refuses a commit whose subject is missing, too long, or not followed by an empty line.

Git calls it with the file of the message, through the commit-msg hook of `.ci/pre-commit.yaml`.
"""

from __future__ import annotations

import sys
from pathlib import Path

LONGEST = 72
"""Characters; `git log --oneline` and web pages cut off longer subjects."""


def fault(message: str) -> str:
    """Return why a message is refused, or an empty text."""
    lines = [line for line in message.splitlines() if not line.startswith("#")]
    subject = lines[0].strip() if lines else ""
    if not subject:
        return "The commit has no subject."
    if len(subject) > LONGEST and not subject.startswith(("fixup! ", "squash! ")):
        return f"The subject has {len(subject)} characters, of at most {LONGEST}."
    if len(lines) > 1 and lines[1].strip():
        return "The second line must be empty: it separates the subject from the body."
    return ""


if __name__ == "__main__":
    sys.exit(fault(Path(sys.argv[1]).read_text(encoding="utf-8")) or 0)
