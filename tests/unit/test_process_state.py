"""What a process keeps between links: named here with the reason, so that no more comes unnoticed.

Links run in several threads of one process, so nothing that one of them decides may be where
another sees it. docs/python.md says so to users.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "pylink"

# Each is filled by operations that are whole by themselves (setdefault, add, append, pop of one
# item), and what is in it does not depend on who came first.
KEPT = {
    "files/temporary.py: _held": "names of output files that are recycled; one owner each",
    "files/workdir.py: _roots": "the root of `pylink reproduce`, a process of its own",
    "fleet/digests.py: find_hasher": "the address of a function",
    "inputs/payload.py: _opened": "which libraries decompress",
    "jitlink/__init__.py: _installed": "stand-ins of nvJitLink, under a lock",
    "jitlink/__init__.py: _lock": "the lock of these",
    "remarks/scalars.py: scalar": "a text by that text",
    "report/file/conversion.py: _plans": "fields by class",
    "report/sections/patterns.py: _slow_expressions": "expressions that took too long",
    "size/chips.py: _number_of": "the number of a target by its name",
    "tabular/columns.py: kinds_of": "columns by class of rows",
    "tabular/columns.py: units_of": "units by class of rows",
}

CONTAINERS = ("dict", "list", "set", "defaultdict", "Counter", "deque", "OrderedDict")


def is_empty_container(value: ast.expr | None) -> bool:
    """Whether it is made to be filled later, or guards something that is."""
    match value:
        case ast.Dict(keys=[]) | ast.List(elts=[]):
            return True
        case ast.Call(func=called, args=[], keywords=[]):
            name = ast.unparse(called).rpartition(".")[2]
            return name in (*CONTAINERS, "Lock", "RLock", "local")
    return False


def kept_in(tree: ast.Module) -> Iterator[str]:
    """The names of a module that calls may change."""
    for statement in tree.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), value=value) if is_empty_container(value):
                yield name
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if is_empty_container(value):
                yield name
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            yield from node.names
        if isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                name = ast.unparse(decorator).partition("(")[0].rpartition(".")[2]
                if name in ("cache", "lru_cache"):
                    yield node.name


def test_what_modules_keep_is_listed() -> None:
    found = set()
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found |= {f"{path.relative_to(PACKAGE)}: {name}" for name in kept_in(tree)}
    assert found == set(KEPT)


@pytest.mark.parametrize(
    "planted",
    [
        "last = None\ndef f():\n    global last\n    last = 1\n",
        "last: dict[str, int] = {}\n",
        "last = collections.defaultdict()\n",
        "@functools.lru_cache(maxsize=None)\ndef last(x): ...\n",
        "last = threading.Lock()\n",
    ],
)
def test_state_that_is_planted_is_found(planted: str) -> None:
    assert list(kept_in(ast.parse(planted))) == ["last"]
    assert list(kept_in(ast.parse("last = {1: 2}\ndef f():\n    last = {}\n"))) == []
