"""Names of files, styles of records and imports for types are those of CONTRIBUTING.md."""

from __future__ import annotations

import ast
import re
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
