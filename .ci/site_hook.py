"""Prepares the pages for MkDocs: their order, generated parts, and the files that they link to.

The site's sources are the folder ``resources``, whose ``docs`` become the top of the site. Links
that leave the folder, such as ``../../CONTRIBUTING.md``, work as they do in the checkout: their
targets are added to the site, pages as pages and sources as they are.
"""

from __future__ import annotations

import base64
import posixpath
import re
import sys
from html import escape
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
RESOURCES = ROOT / "resources"
SCRIPTS = ROOT / ".ci" / "site"
sys.path.insert(0, str(ROOT / "app"))

from kernelscope import filters  # noqa: E402  (of this checkout)
from kernelscope.teach import handbook, manual  # noqa: E402  (of this checkout)
from kernelscope.teach.handbook import pictures  # noqa: E402

OTHERS = {
    "Results": (
        *("bench/README.md", "bench/limits.md"),
        *("bench/nlm-strength.md", "bench/mri-strength.md", "bench/denoisers.md"),
        *("bench/noise_kinds.md", "bench/photos.md", "bench/volume-denoisers.md"),
    ),
    "Project": ("../CONTRIBUTING.md", "../CHANGELOG.md", "../SECURITY.md", "README.md"),
}
"""Pages that are not in ``resources/docs``, by section of the navigation."""

_LINK = re.compile(r"(\]\()(?!\w+:)([^)#\s]+)")
_PICTURE = re.compile(rf"^!\[([^]]*)\]\({pictures.SCHEME}:([^)]+)\)$", re.MULTILINE)
_uris: dict[Path, str] = {}
"""The name within the site's sources of every file that pages may link to."""


def on_config(config: Any) -> Any:
    """Put the pages into their order."""
    sections = [
        {name: [{handbook.title(page): f"docs/{page}.md"} for page in pages]}
        for name, pages in handbook.SECTIONS.items()
    ]
    others = [
        {name: [_entry(RESOURCES / page) for page in pages]} for name, pages in OTHERS.items()
    ]
    config.nav = sections + others
    return config


def _entry(path: Path) -> dict[str, str]:
    return {manual.title_of(path): _uri(path.resolve())}


def _uri(path: Path) -> str:
    """Return the name of a file within the site's sources."""
    if path.is_relative_to(RESOURCES):
        return path.relative_to(RESOURCES).as_posix()
    inside = path.relative_to(ROOT).as_posix()
    return f"project/{inside}" if path.suffix == ".md" else f"source/{inside}"


def on_files(files: Files, config: Any) -> Files:
    """Move the pages of ``docs`` to the top, and add what pages link to outside of the folder."""
    _uris.clear()
    for file in files:
        _uris[RESOURCES / file.src_uri] = file.src_uri
        if file.src_uri == "README.md":
            _place(file, "samples/index.html")
        elif file.src_uri.startswith("docs/"):
            _place(file, file.dest_uri.removeprefix("docs/"))
    for name in handbook.GENERATED:
        generated = File.generated(config, f"docs/{name}.md", content=handbook.page(name))
        _place(generated, generated.dest_uri.removeprefix("docs/"))
        files.append(generated)
    for script in sorted(SCRIPTS.glob("*.js")):
        files.append(File.generated(config, f"assets/{script.name}", abs_src_path=str(script)))
    wanted = [(RESOURCES / page).resolve() for pages in OTHERS.values() for page in pages]
    pages = [*_uris, *wanted]
    for path in pages:  # grows on the way
        if path not in _uris:
            _uris[path] = _uri(path)
            files.append(File.generated(config, _uris[path], abs_src_path=str(path)))
        if path.suffix == ".md":
            linked = (target for _, target in _LINK.findall(path.read_text(encoding="utf-8")))
            found = ((path.parent / target).resolve() for target in linked)
            pages += [file for file in found if file.is_file() and file not in _uris]
    return files


def _place(file: File, uri: str) -> None:
    """Let a file become `uri` of the site."""
    file.dest_uri = uri
    for derived in ("url", "abs_dest_path"):
        file.__dict__.pop(derived, None)


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Fill in what the filters generate, and let links lead to where files are on the site."""
    here = Path(page.file.abs_src_path or RESOURCES / page.file.src_uri).parent

    def replaced(match: re.Match[str]) -> str:
        uri = _uris.get((here / match[2]).resolve())
        if uri is None:
            return match[0]  # MkDocs says what is wrong with it
        return match[1] + posixpath.relpath(uri, posixpath.dirname(page.file.src_uri))

    return _PICTURE.sub(_drawn, manual.fill(_LINK.sub(replaced, markdown)))


def _drawn(match: re.Match[str]) -> str:
    """Return a generated picture as part of the page: formulas as MathML, drawings as SVG."""
    text, name = escape(match[1]), match[2]
    kind, _, about = name.partition("/")
    if kind == "formula":
        return f"<div>{pictures.as_mathml(filters.get(about).explanation.formula)}</div>"
    content = pictures.render(name)
    if content.startswith(b"<svg"):
        return f'<figure aria-label="{text}">{content.decode()}</figure>'
    data = base64.b64encode(content).decode()
    return f'<figure><img alt="{text}" src="data:image/png;base64,{data}"></figure>'
