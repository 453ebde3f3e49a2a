"""The commands that make a machine ready: ``completion`` of shells, and ``warm-up`` of filters."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Mapping

from kernelscope.base import jit
from kernelscope.base.errors import AppError
from kernelscope.base.paths import RESOURCES
from kernelscope.base.text import PROGRAM
from kernelscope.cli.common import Parser, every_filter, show
from kernelscope.schema.devices import Device
from kernelscope.teach.manual import filter_name


def completion(arguments: list[str]) -> int:
    """Print a script that completes commands and options in a shell."""
    parser = Parser(
        prog=f"{PROGRAM} completion",
        description="Prints a script that completes commands, filters and options in a shell.",
        epilog=f'bash: eval "$({PROGRAM} completion bash)"',
    )
    parser.add_argument("shell", choices=_SHELLS, help="the shell that reads the script")
    parser.parse_args(arguments)
    print(script(), end="")
    return 0


_SHELLS = ("bash", "zsh")
_ON_KERNELS = ("kernel", "trace")  # the commands that take a filter with a kernel

_Options = dict[str, str]
"""The options of a command, each with the words that may follow it, if these are known."""


def script() -> str:
    from kernelscope.cli.main import COMMANDS, command_of

    keys = {name: _options(command_of(name), "--help") for name in COMMANDS if name != "apply"}
    apply = command_of("apply")
    specs = {filter_name(spec): spec for spec in every_filter().values()}
    filters = {name: _options(apply, name, "--help-all") for name in specs}
    keys["denoise"] |= {
        option: words
        for option, words in filters["mean"].items()
        if all(words == others.get(option) for others in filters.values())
    }
    with_kernel = [name for name, spec in specs.items() if spec.levels(Device.GPU)]
    for name, spec in specs.items():
        choices = {
            "--" + each.name.replace("_", "-"): " ".join(choice.value for choice in offered)
            for each in spec.parameters
            if (offered := getattr(each, "choices", ()))
        }
        levels = [(*spec.levels(Device.CPU), *spec.levels(Device.GPU)), spec.levels(Device.GPU)]
        everywhere, of_gpu = (" ".join(dict.fromkeys(each.id for each in one)) for one in levels)
        keys[f"apply {name}"] = filters[name] | choices | {"--level": everywhere}
        for command in _ON_KERNELS if name in with_kernel else ():
            own = _options(command_of(command), name, "--help")
            keys[f"{command} {name}"] = own | choices | {"--level": of_gpu}
    keys["apply --recipe"] = _options(apply, "--help")
    options = {key: " ".join(found) for key, found in keys.items()}
    values = {
        f"{key} {option}": words
        for key, found in keys.items()
        for option, words in found.items()
        if words
    }
    values["completion completion"] = " ".join(_SHELLS)
    text = (RESOURCES / "templates" / "completion.bash").read_text(encoding="utf-8")
    text = text.replace("@PROGRAM@", PROGRAM).replace("@COMMANDS@", " ".join(COMMANDS))
    text = text.replace("@FILTERS@", " ".join(specs))
    text = text.replace("@KERNEL_COMMANDS@", "|".join(_ON_KERNELS))
    text = text.replace("@WITH_KERNEL@", " ".join(with_kernel))
    return text.replace("@OPTIONS@", _cases(options)).replace("@VALUES@", _cases(values))


def _cases(words: Mapping[str, str]) -> str:
    return "\n".join(f'        "{key}") words="{each}" ;;' for key, each in words.items())


def _options(command: Callable[[list[str]], int], *arguments: str) -> _Options:
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.suppress(SystemExit):
        command(list(arguments))
    option = r"^  (?:-\w, )?(--[\w-]+)"
    pairs = re.findall(option + r"(?:, (--[\w-]+))?", text.getvalue(), re.MULTILINE)
    values = re.findall(option + r" \{([\w,-]+)\}", text.getvalue(), re.MULTILINE)
    found = dict.fromkeys((word for pair in pairs for word in pair if word), "")
    return found | {name: words.replace(",", " ") for name, words in values}


def warm_up(arguments: list[str]) -> int:
    """Compile the code of the common filters now, so that no run waits."""
    Parser(
        prog=f"{PROGRAM} warm-up",
        description="Compiles the code of the common filters for the CPU, for 8 bit, 16 bit and "
        "float, so that no first run waits for it. What is compiled already is not compiled again.",
    ).parse_args(arguments)
    from kernelscope.backends.warm_up import compile_all, pieces

    jit.load_numba()  # decides on the place of the cache
    if not jit.can_cache():
        raise AppError(
            f"Compiled code cannot be kept in {jit.cache_folder()}.",
            "Set XDG_CACHE_HOME to a folder that you can write to.",
        )
    for done in compile_all(pieces()):
        if done.next:
            show(f"{done.number + 1} of {done.of}: {done.next}")
    show("All is compiled.")
    return 0
