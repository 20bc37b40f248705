"""The stubs are the contracts of the native modules: they name what is there, as it is there."""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path

import pytest

import pylink._native
from pylink._native import OBJECT_PATH

PACKAGE = Path(pylink._native.__path__[0])
STUBS = sorted(PACKAGE.glob("*.pyi"))


def _declared(stub: Path) -> dict[str, list[str]]:
    """Parameter names of each function of a stub."""
    tree = ast.parse(stub.read_text(encoding="utf-8"))
    return {
        node.name: [arg.arg for arg in (*node.args.args, *node.args.kwonlyargs)]
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
    }


def _defined(stub: Path) -> dict[str, list[str]]:
    """The same of the compiled module."""
    module = importlib.import_module(f"pylink._native.{stub.stem}")
    return {
        name: list(inspect.signature(value).parameters)
        for name, value in vars(module).items()
        if inspect.isbuiltin(value) and not name.startswith("__")
    }


@pytest.mark.parametrize("stub", STUBS, ids=lambda stub: stub.stem)
def test_stub_declares_the_functions_of_its_module(stub: Path) -> None:
    assert _declared(stub) == _defined(stub)


@pytest.mark.parametrize("stub", STUBS, ids=lambda stub: stub.stem)
def test_what_else_a_stub_declares_is_there(stub: Path) -> None:
    module = importlib.import_module(f"pylink._native.{stub.stem}")
    names = set()
    for node in ast.parse(stub.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            names.add(node.name)
        elif (
            isinstance(node, ast.AnnAssign)
            and isinstance(node.target, ast.Name)
            and ast.unparse(node.annotation) != "TypeAlias"
        ):
            names.add(node.target.id)
    assert names <= vars(module).keys()


def _summaries(stub: Path) -> dict[str, str]:
    """The first line of the docstring of each function of a stub."""
    tree = ast.parse(stub.read_text(encoding="utf-8"))
    return {
        node.name: (ast.get_docstring(node) or "").partition("\n")[0]
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
    }


@pytest.mark.parametrize("stub", STUBS, ids=lambda stub: stub.stem)
def test_a_function_begins_as_its_stub_says_what_it_does(stub: Path) -> None:
    module = importlib.import_module(f"pylink._native.{stub.stem}")
    summaries = _summaries(stub)
    assert {name: getattr(module, name).__doc__ for name in summaries} == summaries


def test_every_native_module_has_a_stub() -> None:
    sources = (PACKAGE.parents[1] / "_native").glob("*/*.pyx")
    assert {source.stem for source in sources} == {stub.stem for stub in STUBS}


def test_all_native_modules_are_in_one_shared_object() -> None:
    modules = [importlib.import_module(f"pylink._native.{stub.stem}") for stub in STUBS]
    assert {module.__file__ for module in modules} == {OBJECT_PATH}


def test_a_native_module_that_is_not_there_is_an_import_error() -> None:
    with pytest.raises(ImportError, match="PyInit_absent"):
        importlib.import_module("pylink._native.absent")
