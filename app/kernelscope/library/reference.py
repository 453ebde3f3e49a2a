"""The page *Reference of the library*: every function, from the specs and the docstrings.

``python -m kernelscope.library`` writes ``resources/docs/api.md`` again. A test compares the file
with the specs.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from typing import Any

import kernelscope
from kernelscope import filters
from kernelscope.base.paths import RESOURCES
from kernelscope.library import ERRORS, MODULES, member
from kernelscope.library.arguments import NO_DEFAULT, Argument, arguments_of, literal
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.samples import Kind
from kernelscope.teach.manual import table

FILE = RESOURCES / "docs" / "api.md"

_HEAD = """\
# Reference of the library

`import kernelscope as ks`; version {version}. [Library](library.md) is the introduction. A call
without an array returns a step of a [recipe](#recipe).

`python -m kernelscope.library` generates this page from the filters and the docstrings.
"""

_SECTIONS = ("Parameters", "Attributes", "Returns", "Raises")
_ITEM = re.compile(r"^(\S.*?)(?: : (.*))?$")


def text() -> str:
    parts = [_HEAD.format(version=kernelscope.__version__), "## Arguments of all filters"]
    specs = {
        kind: sorted(filters.discover(kind).values(), key=lambda each: each.id) for kind in Kind
    }
    shared = _shared(arguments_of(spec) for each in specs.values() for spec in each)
    own = [each for each in shared.values() if each.name not in ("level", "border")]
    parts.append("The border and the levels are those of each filter.\n\n" + _table(own))
    for kind, title in ((Kind.PICTURE, "Filters of pictures"), (Kind.VOLUME, "Filters of volumes")):
        parts += [f"## {title}", *(_function(spec, shared) for spec in specs[kind])]
    others = [name for name in MODULES if name not in ERRORS]
    parts += ["## Further members", *map(_member, sorted(others, key=str.lower))]
    parts += ["## Errors", table(("error", "meaning"), map(_error, sorted(ERRORS)))]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _shared(signatures: Iterable[tuple[Argument, ...]]) -> dict[str, Argument]:
    """Return the arguments that more than one filter has with the same words."""
    found: dict[str, Argument] = {}
    parameters = {
        each.name
        for kind in Kind
        for spec in filters.discover(kind).values()
        for each in spec.parameters
    }
    for arguments in signatures:
        for argument in arguments:
            if argument.name not in parameters:
                found.setdefault(argument.name, argument)
    return found


def _function(spec: FilterSpec, shared: dict[str, Argument]) -> str:
    arguments = arguments_of(spec)
    own = [each for each in arguments if each.name not in shared]
    own += [each for each in arguments if each.name in ("border", "level")]
    names = ", ".join(each.name for each in arguments if each not in own and each.named)
    first = arguments[0].name
    settings = "".join(f", {each.name}={literal(each.default)}" for each in own)
    return "\n\n".join(
        [
            f"### {spec.id}",
            f"```text\nks.{spec.id}({first}, *{settings}, ...)\n```",
            f"{spec.summary} {spec.explanation.use}".strip(),
            _table(own),
            f"And `{names.replace(', ', '`, `')}`. Source: {spec.source}.",
        ]
    )


def _table(arguments: Iterable[Argument]) -> str:
    rows = (
        (
            f"`{each.name}`",
            each.annotation.words,
            "" if each.default is NO_DEFAULT else f"`{each.default!r}`",
            each.help,
        )
        for each in arguments
    )
    return table(("argument", "type", "default", "meaning"), rows)


def _member(name: str) -> str:
    value = member(name)
    parts = [f"### {name}", *_documented(f"ks.{name}", value)]
    if inspect.isclass(value):
        for key, method in vars(value).items():
            if not key.startswith("_"):
                called = method.__func__ if isinstance(method, classmethod) else method
                parts += [f"#### {name}.{key}", *_documented(f"{name}.{key}", called)]
    return "\n\n".join(parts)


def _documented(name: str, value: Any) -> Iterator[str]:
    """Yield signature, text and tables of a member."""
    if callable(value) and not inspect.isclass(value):
        signature = inspect.signature(value)
        names = [each for each in signature.parameters.values() if each.name not in ("self", "cls")]
        plain = [each.replace(annotation=each.empty) for each in names]
        yield f"```text\n{name}{inspect.Signature(plain)}\n```"
    title = ""
    for section, lines in _split(inspect.getdoc(value) or ""):
        if section != title:
            title = section
            yield f"**{section}**"
        if section:
            yield table((section.lower(), "type", "meaning"), _entries(lines))
        else:
            yield _prose("\n".join(lines))


def _split(docstring: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the parts of a docstring of numpydoc form: the title, empty for the text, and lines."""
    title, lines = "", list[str]()
    given = docstring.splitlines()
    for place, line in enumerate(given):
        following = given[place + 1] if place + 1 < len(given) else ""
        if line in _SECTIONS and set(following) == {"-"}:
            yield title, lines
            title, lines = line, []
        elif not (line and set(line) == {"-"}):
            lines.append(line)
    yield title, lines


def _entries(lines: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    found: list[tuple[str, str, list[str]]] = []
    for line in filter(str.strip, lines):
        if line.startswith(" ") and found:
            found[-1][2].append(line.strip())
        elif item := _ITEM.match(line):
            found.append((item[1], item[2] or "", []))
    for name, kind, words in found:
        yield f"`{name}`", kind, _prose(" ".join(words))


def _prose(words: str) -> str:
    """Return a docstring's text as Markdown: examples as blocks of code."""
    words = re.sub(r"``(.+?)``", r"`\1`", words)
    found = re.split(r"\n*::\n\n((?: {4}.*\n|\n)*(?: {4}.*))", words)
    blocks = [
        f"```text\n{inspect.cleandoc(part)}\n```" if number % 2 else part.strip()
        for number, part in enumerate(found)
    ]
    return "\n\n".join(filter(None, blocks))


def _error(name: str) -> tuple[str, str]:
    first = (inspect.getdoc(member(name)) or "").partition("\n\n")[0]
    return f"`ks.{name}`", _prose(" ".join(first.split()))
