"""Finds rule files on the search path and imports them; a bad file does not stop the others."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from pylink.report.errors import ReportError
from pylink.report.rules import nvrules
from pylink.report.sections.directories import Findings, files_in

SUFFIX = ".py"

# The functions that every rule has.
REQUIRED_FUNCTIONS = ("get_identifier", "apply")

# The name of the module that rules import; in Nsight Compute it is a file beside its rules.
INTERFACE = "NvRules"


@dataclass(slots=True)
class Rule:
    """A rule, from the Python file `file`, which was imported as `module`.

    `section` is the identifier of the section it belongs to, or None. `parents` are the identifiers
    of rules that run before it and may send numbers to it.
    """

    identifier: str
    name: str
    description: str
    section: str | None
    parents: tuple[str, ...]
    file: Path
    module: ModuleType


@dataclass(slots=True)
class LoadedRules(Findings):
    """The rules of a search path, sorted by identifier."""

    rules: list[Rule] = field(default_factory=list)


@contextmanager
def rule_imports(path: Iterable[Path]) -> Iterator[None]:
    """Let rules import `NvRules`, and helper modules from the directories of `path`."""
    old_path, old_interface = list(sys.path), sys.modules.get(INTERFACE)
    directories = [os.path.abspath(directory) for directory in path]
    old_modules = set(sys.modules)
    sys.path[:0] = directories
    sys.modules[INTERFACE] = nvrules
    try:
        yield
    finally:
        sys.path[:] = old_path
        # Rules of another directory may have helper modules with the same names.
        for name in set(sys.modules) - old_modules:
            if os.path.dirname(getattr(sys.modules[name], "__file__", None) or "") in directories:
                del sys.modules[name]
        if old_interface is None:
            del sys.modules[INTERFACE]
        else:
            sys.modules[INTERFACE] = old_interface


def load_rules(path: Iterable[Path]) -> LoadedRules:
    """Load the rules of the directories of `path`; of equal identifiers the last file counts.

    A file with neither `get_identifier` nor `apply` is a helper module, and one with only one of
    the two an error. A file that fails to load is in `errors` of the result.
    """
    directories = list(path)
    loaded = LoadedRules()
    by_identifier: dict[str, Rule] = {}
    with rule_imports(directories):
        for file in files_in(directories, SUFFIX):
            if file.stem == INTERFACE:
                continue
            try:
                rule = _load(file)
            # A rule may raise anything, including SystemExit.
            except (Exception, SystemExit) as error:
                loaded.errors.append((file, describe_error(error, file)))
                continue
            if rule is None:
                continue
            replaced = by_identifier.pop(rule.identifier, None)
            if replaced is not None:
                loaded.note_replacement(f"rule {rule.identifier}", file, replaced.file)
            by_identifier[rule.identifier] = rule
    loaded.rules = sorted(by_identifier.values(), key=lambda rule: rule.identifier)
    return loaded


def describe_error(error: BaseException, file: Path) -> str:
    """Return an exception as text, with its line number in the rule file `file` if it has one."""
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return f"line {error.lineno}: {error.msg}"
    if isinstance(error, ReportError):
        return str(error)
    position = ""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(file):
            position = f"line {trace.tb_lineno}: "
        trace = trace.tb_next
    text = " ".join(str(error).split())
    return f"{position}{type(error).__name__}{f': {text}' if text else ''}"


def _load(file: Path) -> Rule | None:
    """Import a file and return its rule; None for a helper module."""
    spec = importlib.util.spec_from_file_location(f"pylink_rule_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    present = [name for name in REQUIRED_FUNCTIONS if callable(getattr(module, name, None))]
    if not present:
        return None
    if len(present) < len(REQUIRED_FUNCTIONS):
        (missing,) = set(REQUIRED_FUNCTIONS) - set(present)
        raise ReportError(f"not a rule: it has {present[0]} but not {missing}")
    identifier = _call_for_text(module, "get_identifier")
    if not identifier:
        raise ReportError("get_identifier returns an empty identifier")
    parents: Iterable[object] = getattr(module, "get_parent_rules_identifiers", list)()
    return Rule(
        identifier,
        _call_for_text(module, "get_name") or identifier,
        _call_for_text(module, "get_description"),
        _call_for_text(module, "get_section_identifier") or None,
        tuple(map(str, parents)),
        file,
        module,
    )


def _call_for_text(module: ModuleType, function: str) -> str:
    """Call a function of a module and return the text that it returns; "" if it does not exist."""
    value = getattr(module, function, str)()
    if not isinstance(value, str):
        raise ReportError(f"{function} returns a {type(value).__name__}, not a string")
    return value
