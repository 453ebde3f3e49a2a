"""The command ``completion``: a script by which bash and zsh complete commands and options."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable

from kernelscope.base.paths import RESOURCES
from kernelscope.base.text import PROGRAM
from kernelscope.cli.common import Parser, every_filter
from kernelscope.teach.manual import filter_name


def completion(arguments: list[str]) -> int:
    """Print a script that completes commands and options in a shell."""
    parser = Parser(
        prog=f"{PROGRAM} completion",
        description="Prints a script that completes commands, filters and options in a shell.",
        epilog=f'bash: eval "$({PROGRAM} completion bash)"',
    )
    parser.add_argument("shell", choices=("bash", "zsh"), help="the shell that reads the script")
    parser.parse_args(arguments)
    print(script(), end="")
    return 0


def script() -> str:
    from kernelscope.cli.main import COMMANDS, command_of

    keys = {name: _options(command_of(name), "--help") for name in COMMANDS if name != "apply"}
    apply, names = command_of("apply"), list(map(filter_name, every_filter().values()))
    for name in names:
        keys[f"apply {name}"] = _options(apply, name, "--help-all")
    keys["apply --recipe"] = _options(apply, "--help")
    cases = "\n".join(f'        "{key}") words="{words}" ;;' for key, words in keys.items())
    text = (RESOURCES / "templates" / "completion.bash").read_text(encoding="utf-8")
    text = text.replace("@PROGRAM@", PROGRAM).replace("@COMMANDS@", " ".join(COMMANDS))
    return text.replace("@FILTERS@", " ".join(names)).replace("@CASES@", cases)


def _options(command: Callable[[list[str]], int], *arguments: str) -> str:
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.suppress(SystemExit):
        command(list(arguments))
    found = re.findall(r"^  (?:-\w, )?(--[\w-]+)(?:, (--[\w-]+))?", text.getvalue(), re.MULTILINE)
    return " ".join(dict.fromkeys(word for pair in found for word in pair if word))
