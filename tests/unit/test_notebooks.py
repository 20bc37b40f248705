"""Notebooks: those of the pages run and show what is in their files; large links stay small."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import notebooks
import pytest
from helpers.cubin_builder import one_kernel

import pylink

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
MOST_BYTES = 60_000


def kinds(outputs: list[dict[str, Any]]) -> list[object]:
    """What outputs are, and what was printed; other values have times in them."""
    return [output.get("data", {}).keys() or output["name"] for output in outputs]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_is_in_its_file(path: Path) -> None:
    notebook = notebooks.read(path)
    stored = [cell["outputs"] for cell in notebooks.code_cells(notebook)]
    made = notebooks.run(notebook)
    assert [kinds(outputs) for outputs in made] == [kinds(outputs) for outputs in stored], (
        f"run python scripts/notebooks.py docs/notebooks/{path.name}"
    )
    printed = [
        ["".join(output["text"]) for output in outputs if "text" in output]
        for outputs in (*made, *stored)
    ]
    assert printed[: len(made)] == printed[len(made) :]
    assert any(outputs for outputs in made)
    assert str(ROOT) not in path.read_text(encoding="utf-8")
    assert path.stat().st_size < MOST_BYTES


def test_there_are_notebooks() -> None:
    assert [path.stem for path in PAGES] == ["dedup", "embed", "time-and-bytes"]
    listed = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert all(f"notebooks/{path.stem}.md" in listed for path in PAGES)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_notebook_is_in_the_format(path: Path) -> None:
    """What Jupyter asks of a notebook of version 4.5."""
    notebook = notebooks.read(path)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)
    for cell in notebook["cells"]:
        assert {"cell_type", "id", "metadata", "source"} <= cell.keys()
        assert (cell["cell_type"] == "code") == ("outputs" in cell) == ("execution_count" in cell)


def test_a_page_has_text_code_and_what_it_shows() -> None:
    outputs = notebooks.run_cell("print('a < b')\n\n1 + 1", {}, 1)
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "text"]},
        {"cell_type": "code", "source": ["1 + 1"], "outputs": outputs},
    ]
    page = notebooks.markdown_page({"cells": cells})
    assert page.startswith("# Title\ntext\n\n```python\n1 + 1\n```\n\n<div")
    assert "<pre>a &lt; b</pre>" in page
    assert "<pre>2</pre>" in page


def test_what_a_cell_raises_ends_the_run() -> None:
    cell = {"cell_type": "code", "source": ["1 / 0"], "outputs": []}
    before = Path.cwd()
    with pytest.raises(ZeroDivisionError):
        notebooks.run({"cells": [cell]})
    assert Path.cwd() == before


@pytest.mark.parametrize("count", [400, 5000])
def test_a_link_as_the_last_line_of_a_cell_is_small(count: int) -> None:
    cubins = [(f"{n}.cubin", one_kernel(f"kernel_{n}").build()) for n in range(count)]
    names = {"pylink": pylink, "cubins": cubins}
    cell = "result = pylink.link(cubins, arch='sm_80', profile=True)\nresult"
    outputs = notebooks.run_cell(cell, names, 1)
    for view in ("result.profile", "result.inputs", "result.symbols", "result.sizes"):
        outputs += notebooks.run_cell(view, names, 2)
    for output in outputs:
        assert len(json.dumps(output)) < MOST_BYTES
        assert len(output["data"]["text/plain"]) <= 12
    assert f"{count:,} inputs" in "".join(outputs[0]["data"]["text/html"])
    assert len(json.dumps(outputs)) < MOST_BYTES
