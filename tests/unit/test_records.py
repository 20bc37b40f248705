"""Names of files, styles of records and imports for types are those of CONTRIBUTING.md."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

import pytest

from pylink.options import commands

PACKAGE = Path(__file__).parents[2] / "src" / "pylink"
# No link loads these; what they hold in fields are dataclasses.
COMMANDS = ("aprof", "audit", "bench", "dedup", "fleet", "inspect", "prune", "report", "size")


def only_holds_fields(found: ast.ClassDef) -> bool:
    """Whether `__init__` stores its arguments as they are, and there is no other method."""
    methods = [part for part in found.body if isinstance(part, ast.FunctionDef)]
    if found.bases or [method.name for method in methods] != ["__init__"]:
        return False
    made = methods[0]
    given = {argument.arg for argument in [*made.args.args[1:], *made.args.kwonlyargs]}
    stored = {
        target.attr: line.value.id
        for line in made.body
        if isinstance(line, (ast.Assign, ast.AnnAssign))
        for target in (line.targets if isinstance(line, ast.Assign) else [line.target])
        if isinstance(target, ast.Attribute) and isinstance(line.value, ast.Name)
    }
    return len(stored) == len(made.body) and {*stored.values()} == given


def records(text: str) -> list[str]:
    """Names of the classes that hold fields and are written by hand."""
    classes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef)]
    return [found.name for found in classes if only_holds_fields(found)]


def test_a_record_by_hand_is_recognized() -> None:
    by_hand = "class A:\n    def __init__(self, a: int) -> None:\n        self.a = a\n"
    assert records(by_hand) == ["A"]
    assert records(by_hand.replace("self.a = a", "self.a = a + 1")) == []
    assert records("@dataclass\nclass A:\n    a: int\n") == []


@pytest.mark.parametrize("room", COMMANDS)
def test_records_of_commands_are_dataclasses(room: str) -> None:
    files = [*(PACKAGE / room).rglob("*.py")]
    assert files
    texts = {path: path.read_text(encoding="utf-8") for path in files}
    assert {path.name: found for path, text in texts.items() if (found := records(text))} == {}


def named_tuples(trees: Iterable[ast.Module]) -> dict[str, list[str]]:
    """The fields of each NamedTuple, by its name."""
    return {
        found.name: [
            ast.unparse(part.target) for part in found.body if isinstance(part, ast.AnnAssign)
        ]
        for tree in trees
        for found in ast.walk(tree)
        if isinstance(found, ast.ClassDef) and [*map(ast.unparse, found.bases)] == ["NamedTuple"]
    }


def used_as_tuples(trees: Iterable[ast.Module], fields: dict[str, list[str]]) -> set[str]:
    """Names of the classes that are rows of a table, unpacked, or used by methods of tuples.

    Variables have no types here. So a tuple of variables shows that a class is unpacked if it has
    the names of its fields, and a call of `_replace` shows its class by their names.
    """
    used = set()
    for node in (node for tree in trees for node in ast.walk(tree)):
        match node:
            case ast.Subscript(ast.Name("Table"), ast.Name(name)):
                used.add(name)
            case ast.Attribute(ast.Name(name), "_make" | "_fields"):
                used.add(name)
            case ast.Call(ast.Attribute(_, "_replace")):
                changed = {keyword.arg for keyword in node.keywords}
                used |= {name for name in fields if changed <= {*fields[name]}}
            case ast.Tuple(variables, ast.Store()):
                used |= {name for name in fields if are_fields(variables, fields[name])}
    return used


def are_fields(variables: list[ast.expr], fields: list[str]) -> bool:
    """Whether these are variables with the names of the fields; `_` stands for any of them."""
    if len(variables) != len(fields):
        return False
    return all(
        isinstance(variable, ast.Name) and variable.id in (field, "_")
        for variable, field in zip(variables, fields, strict=True)
    )


def test_uses_of_a_tuple_are_recognized() -> None:
    tree = ast.parse("class A(NamedTuple):\n    a: int\n    b: int\n")
    fields = named_tuples([tree])
    assert fields == {"A": ["a", "b"]}
    for use in ("rows: Table[A]", "A._make(c)", "A._fields", "d._replace(b=1)", "a, _ = d"):
        assert used_as_tuples([tree, ast.parse(use)], fields) == {"A"}, use
    for use in ("A(1, 2)", "A(*c)", "d.a", "d._replace(c=1)", "a, b, c = d", "b, a = d"):
        assert used_as_tuples([tree, ast.parse(use)], fields) == set(), use


def test_named_tuples_are_used_as_tuples() -> None:
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")]
    fields = named_tuples(trees)
    assert len(fields) > 20
    assert {*fields} - used_as_tuples(trees, fields) == set()


def test_commands_are_in_the_files_of_commands() -> None:
    modules = [command.main for command in commands.COMMANDS.values() if command.main]
    assert len(modules) > 15
    name = re.compile(r"pylink\.(?:command\.\w+|(?!command\b)[\w.]+\.command(?:_\w+)?)")
    assert [module for module in modules if not name.fullmatch(module)] == []


def test_every_command_py_has_a_main() -> None:
    names = [path.relative_to(PACKAGE) for path in PACKAGE.rglob("command.py")]
    names += [path.relative_to(PACKAGE) for path in PACKAGE.rglob("command_*.py")]
    assert len(names) > 12
    for name in names:
        module = import_module(".".join(("pylink", *name.with_suffix("").parts)))
        assert callable(module.main)


def test_the_work_of_a_command_is_in_main_of_its_module() -> None:
    """A command that `terminal.running.run` runs; others read their arguments themselves."""
    modules = [command.main for command in commands.COMMANDS.values() if command.main]
    works = {}
    for module in modules:
        text = Path(import_module(module).__file__ or "").read_text(encoding="utf-8")
        for found in re.findall(r"\brun\(\w+(?:\(\))?, argv, (\w+)", text):
            works[module] = found
    assert len(works) > 15
    assert {module: work for module, work in works.items() if work != "_main"} == {}


def test_no_module_imports_the_name_that_type_checkers_know() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    assert (
        sum("\nTYPE_CHECKING = False\nif TYPE_CHECKING:" in text for text in texts.values()) > 300
    )
    importing = [
        str(path.relative_to(PACKAGE))
        for path, text in texts.items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom)
        and node.module == "typing"
        and any(alias.name == "TYPE_CHECKING" for alias in node.names)
    ]
    assert importing == []
