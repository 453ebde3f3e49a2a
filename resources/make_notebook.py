"""Runs the notebook and stores its outputs in it: ``python resources/make_notebook.py``.

A notebook is JSON: cells with their source and, of code, their outputs. Its code needs no Jupyter
and is run as plain Python here. The value of a last line is an output, pictures as PNG.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PIL import Image

FILE = Path(__file__).parent / "notebooks" / "library.ipynb"


def read() -> dict[str, Any]:
    """Return the notebook."""
    notebook: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return notebook


def run(notebook: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """Yield the outputs of each code cell; the folder of the notebook is the current one."""
    variables: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.chdir(FILE.parent):
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                yield _outputs("".join(cell["source"]), variables)


def _outputs(source: str, variables: dict[str, Any]) -> list[dict[str, Any]]:
    """Run a cell and return what it printed, and the value of its last line."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    value = None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, FILE.name, "exec"), variables)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), FILE.name, "eval"), variables)
    found: list[dict[str, Any]] = []
    if printed.getvalue():
        text = printed.getvalue().splitlines(keepends=True)
        found.append({"name": "stdout", "output_type": "stream", "text": text})
    if value is not None:
        found.append({"data": _data(value), "metadata": {}, "output_type": "display_data"})
    return found


def _data(value: Any) -> dict[str, Any]:
    """Return a value by its kinds of media: a picture, or text."""
    if not isinstance(value, Image.Image):
        return {"text/plain": repr(value).splitlines(keepends=True)}
    buffer = io.BytesIO()
    value.save(buffer, "PNG", optimize=True)
    size = f"picture of {value.width}×{value.height} pixels"
    return {"image/png": base64.b64encode(buffer.getvalue()).decode(), "text/plain": [size]}


def main() -> None:
    notebook = read()
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, (cell, outputs) in enumerate(zip(code, run(notebook), strict=True), 1):
        cell["outputs"], cell["execution_count"] = outputs, number
    text = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    FILE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
