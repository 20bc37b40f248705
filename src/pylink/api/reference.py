"""The reference of the Python interface, as text: names with docstrings, tables, and all options.

It is the end of docs/python.md, which `python -m pylink.api.generate` writes.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from pkgutil import resolve_name

import pylink
from pylink.api.optiontypes import call_options, keyword_type, unit_of
from pylink.api.values import ALIASES, OptionValues
from pylink.diagnostics.levels import Severity
from pylink.options.help import HELP
from pylink.tabular.columns import kinds_of, units_of

# Most characters of a signature, without the name, that the reference shows in one line.
SIGNATURE_WIDTH = 70

# Names that the reference shows with a signature. Programs never create the other objects, except
# LinkOptions, whose keywords are in the list of all options.
WITH_SIGNATURE = (
    *("Input", "LinkJob", "Linker", "alink", "dlink", "growth", "link", "link_many"),
    *("bench.measure", "bench.read", "dedup.study"),
)

# Public names of modules that must be imported.
MODULE_NAMES = ("bench.measure", "bench.read", "bench.Results", "dedup.Analysis", "dedup.study")

# The tables by the attribute that has them, with the class of their rows.
TABLES = {
    "LinkResult.sections": "pylink.api.tables.SectionRow",
    "LinkResult.symbols": "pylink.api.tables.SymbolRow",
    "LinkResult.relocations": "pylink.api.tables.RelocationRow",
    "LinkResult.sizes": "pylink.api.tables.SizeRow",
    "LinkResult.inputs": "pylink.api.tables.InputRow",
    "LinkResult.phases": "pylink.api.tables.PhaseRow",
    "LinkResult.remarks": "pylink.remarks.rows.RemarkRow",
    "LinkResult.diagnostics.table": "pylink.diagnostics.rows.DiagnosticRow",
    "LinkResult.profile.tables.steps": "pylink.profile.tables.StepRow",
    "LinkResult.profile.tables.files": "pylink.profile.tables.FileRow",
    "LinkResult.profile.tables.families": "pylink.profile.tables.FamilyRow",
    "LinkResult.profile.tables.relocations": "pylink.profile.tables.TypeRow",
    "LinkResult.profile.tables.folds": "pylink.mercury.rows.FoldRow",
    "Growth.table": "pylink.api.tables.GrowthRow",
    "dedup.Analysis.table": "pylink.mercury.rows.FoldRow",
    "dedup.Analysis.family_table": "pylink.dedup.rows.FamilySums",
    "dedup.Analysis.blocker_table": "pylink.dedup.rows.BlockerRow",
    "bench.Results.table": "pylink.bench.rows.RunRow",
    "bench.Results.medians": "pylink.bench.rows.ContenderRow",
}

# Members of public classes that only pylink itself uses.
INTERNAL = ("add_run", "bare_message", "hide", "input_numbers", "names_place", "short_template")

# The line of docs/python.md that what is generated begins with.
REFERENCE = "<!-- what follows is generated: python -m pylink.api.generate -->\n"


def reference_text() -> str:
    """Return the end of docs/python.md: every public name with its docstring, then all options."""
    parts = [REFERENCE]
    for name in sorted(
        set(pylink.__all__) - {"__version__"}, key=lambda name: (name.lower(), name)
    ):
        parts.append(_about_object(name, getattr(pylink, name)))
    for name in MODULE_NAMES:
        parts.append(_about_object(name, resolve_name(f"pylink.{name}")))
    parts.append("\n### Tables\n")
    parts += [_about_table(name, resolve_name(row)) for name, row in TABLES.items()]
    parts.append(
        "\n### All options\n\nBrackets contain the unit of a number, or the meaning of a text.\n\n"
    )
    for option in call_options():
        aliases = [name for name, attribute in ALIASES.items() if attribute == option.attribute]
        meanings = [*(f"also `{name}`" for name in aliases), *filter(None, [unit_of(option)])]
        brackets = f" ({'; '.join(meanings)})" if meanings else ""
        signature = f"`{option.attribute}: {keyword_type(option)}`"
        parts.append(f"* {signature}{brackets}: {HELP[option.long][1]}\n")
    return "".join(parts)


def _about_object(name: str, value: object) -> str:
    """Return a heading, the signature if the name is in WITH_SIGNATURE, and all docstrings."""
    parts = [f"\n### `pylink.{name}`\n\n"]
    if name in WITH_SIGNATURE:
        parts.append(f"```\n{name.rpartition('.')[2]}{_block_signature(value)}\n```\n\n")
    parts.append(f"{inspect.cleandoc(value.__doc__ or '')}\n")
    if isinstance(value, type):
        members = [f"* {text}\n" for text in (*_attributes(value), *_members(value))]
        parts += ["\n", *members] if members else []
    return "".join(parts)


def _about_table(name: str, row: type) -> str:
    """Return the docstring of a row, and its columns with their numpy types and units."""
    kinds, units = kinds_of(row), units_of(row)
    lines = [f"\n#### `{name}`\n\n{inspect.cleandoc(row.__doc__ or '')}\n\n"]
    lines.append("| column | dtype | unit |\n|---|---|---|\n")
    for column, kind in kinds.items():
        dtype = f"{kind.numpy} or none" if kind.nullable else kind.numpy
        unit = units[column].name if column in units else ""
        lines.append(f"| `{column}` | {dtype} | {unit} |\n")
    return "".join(lines)


def _attributes(owner: type) -> Iterator[str]:
    """Yield texts on attributes with a docstring, or on the members of an enumeration."""
    if issubclass(owner, Severity):
        yield from (f"`{level.name}`: {level.title}" for level in owner)
        return
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
    assert isinstance(tree, ast.ClassDef)
    for statement, after in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(statement, ast.AnnAssign) and isinstance(after, ast.Expr):
            assert isinstance(after.value, ast.Constant)
            text = " ".join(str(after.value.value).split())
            yield f"`{ast.unparse(statement.target)}: {ast.unparse(statement.annotation)}`: {text}"


def _members(owner: type) -> Iterator[str]:
    """Yield texts on methods and properties, except options, which `reference_text` lists."""
    for name, value in sorted(vars(owner).items()):
        if name.startswith("_") or name in INTERNAL:
            continue
        text = " ".join((inspect.getdoc(value) or "").split())
        if inspect.isfunction(value):
            yield f"`{name}{_signature(value)}`: {text}"
        elif isinstance(value, property) and not issubclass(owner, (OptionValues, Severity)):
            kind = value.fget.__annotations__["return"] if value.fget else ""
            yield f"`{name}: {kind}`: {text}"


class _Annotation:
    """An annotation whose `repr` is its source text, without quotes."""

    def __init__(self, text: object) -> None:
        self.text = str(text)

    def __repr__(self) -> str:
        return self.text


def _signature(value: object) -> str:
    """Return the signature in one line."""
    return str(_public_signature(value))


def _block_signature(value: object) -> str:
    """Return the signature, with a line for each parameter if it does not fit into one."""
    signature = _public_signature(value)
    line = str(signature)
    if len(line) <= SIGNATURE_WIDTH:
        return line
    result = line[line.rindex(")") + 1 :]
    parameters = list(signature.parameters.values())
    lines = list(map(str, parameters))
    keywords = [parameter.kind is parameter.KEYWORD_ONLY for parameter in parameters]
    if True in keywords:
        lines.insert(keywords.index(True), "*")
    return "".join(["(\n", *(f"    {text},\n" for text in lines), ")", result])


def _public_signature(value: object) -> inspect.Signature:
    """Return the signature of a class or function as in the source, without `self`."""
    signature = inspect.signature(value)  # type: ignore[arg-type]  # functions and classes
    parameters = [
        parameter
        if parameter.annotation is parameter.empty
        else parameter.replace(annotation=_Annotation(parameter.annotation))
        for parameter in signature.parameters.values()
        if parameter.name != "self"
    ]
    result = (
        signature.empty if isinstance(value, type) else _Annotation(signature.return_annotation)
    )
    return signature.replace(parameters=parameters, return_annotation=result)
