"""Run the notebooks of docs/notebooks and store their outputs.

    python scripts/notebooks.py docs/notebooks/*.ipynb

Each notebook runs from top to bottom in a copy of `demo`, and its outputs replace those in the
file. A test runs the cells in the same way, without writing; the site shows the stored outputs.
Jupyter opens the files unchanged: run them in `demo`.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import shutil
import sys
import tempfile
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]

Cell = dict[str, Any]


def read(path: Path) -> dict[str, Any]:
    """Return the contents of a notebook's file."""
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return notebook


def run(notebook: dict[str, Any]) -> list[list[Cell]]:
    """Run the cells with code, and return the outputs of each in the format of notebooks.

    The cells share their variables, and run in a copy of `demo`. An exception of a cell is raised.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    outputs = []
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "demo", folder, dirs_exist_ok=True)
        os.chdir(folder)
        try:
            for number, cell in enumerate(code_cells(notebook), 1):
                outputs.append(run_cell("".join(cell["source"]), names, number))
        finally:
            os.chdir(before)
    return outputs


def code_cells(notebook: dict[str, Any]) -> list[Cell]:
    """Return the cells with code, in order."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def run_cell(source: str, names: dict[str, Any], number: int) -> list[Cell]:
    """Run one cell, and return its printed output and the value of an expression at its end."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    value = None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, f"<cell {number}>", "exec"), names)
        if isinstance(last, ast.Expr):
            expression = compile(ast.Expression(last.value), f"<cell {number}>", "eval")
            value = eval(expression, names)
    outputs: list[Cell] = []
    if printed.getvalue():
        text = printed.getvalue().splitlines(keepends=True)
        outputs.append({"name": "stdout", "output_type": "stream", "text": text})
    if value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = [value._repr_html_()]
        result = {"data": data, "execution_count": number, "metadata": {}}
        outputs.append({**result, "output_type": "execute_result"})
    return outputs


def write(path: Path) -> None:
    """Run a notebook and store the outputs in its file."""
    notebook = read(path)
    for number, (cell, outputs) in enumerate(
        zip(code_cells(notebook), run(notebook), strict=True), 1
    ):
        cell["execution_count"] = number
        cell["outputs"] = outputs
    text = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True)
    path.write_text(f"{text}\n", encoding="utf-8")


def markdown_page(notebook: dict[str, Any]) -> str:
    """Return a notebook as a page of Markdown, with its stored outputs."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        parts += [_output(output) for output in cell["outputs"]]
    return "\n\n".join(parts) + "\n"


def _output(output: Cell) -> str:
    """Return an output as a block of HTML."""
    data = output.get("data", {})
    if "text/html" in data:
        html = "".join(data["text/html"])
    else:
        text = "".join(output["text"] if "text" in output else data["text/plain"])
        html = f"<pre>{escape(text.rstrip())}</pre>"
    return f'<div class="output" style="overflow-x:auto">{html}</div>'


if __name__ == "__main__":
    for name in sys.argv[1:]:
        write(Path(name))
