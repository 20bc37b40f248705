"""What follows from the option table: keywords, `LinkOptions` and the reference in docs/python.md.

`python -m pylink.api.generate` writes them anew.
"""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from pkgutil import resolve_name

import pylink
from pylink.api.values import ALIASES, OptionValues
from pylink.diagnostics.levels import Severity
from pylink.options.help import HELP
from pylink.options.table import FLAG, LIST, NUMBER, OPTIONS, SIZE, TRUTH, Option
from pylink.tabular.columns import kinds_of, units_of

PACKAGE = Path(__file__).parents[1]
WIDTH = 100

# Arguments that are paths, by the words that the help has for them.
PATHS = ("<file>", "<directory>", "<file or directory>")

NOTICE = "Generated from the option table: python -m pylink.api.generate."

KEYWORDS_HEAD = f'''\
"""The keywords of a link with their types, for type checkers.

{NOTICE}
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylink.api.inputs import Path


class LinkKeywords(TypedDict, total=False):
    """What `link` and `Linker` take by name besides their own arguments.

    `LinkOptions` says what each is. None leaves an option as it is.
    """

'''

OPTIONS_HEAD = f'''\
"""Options of links as an object.

{NOTICE}
"""

from __future__ import annotations

from pylink.api.values import OptionValues

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Unpack

    from pylink.api.keywords import LinkKeywords


class LinkOptions(OptionValues):
    """Options that several links have in common; they cannot be changed.

        options = pylink.LinkOptions(verbose=True, error_limit=10)
        pylink.link(["a.cubin"], options, arch="sm_90a")

    Each option is a keyword and an attribute. None stands for an option that is not given, and the
    attribute of one has the value that the link takes it to have: False, an empty tuple, or None
    for what the linker decides. `lto` is another name of `link_time_opt`. `given` has those that
    were given. Objects with the same options are equal.

    Raises TypeError for an unknown option and for a value of a wrong type. Whether a link can be
    done with the values, the link tells.
    """

    __slots__ = ()

    def __init__(self, **keywords: Unpack[LinkKeywords]) -> None:
        self._keep(keywords)

    def replace(self, **keywords: Unpack[LinkKeywords]) -> LinkOptions:
        """The same options except for these."""
        merged = {{**self.given, **keywords}}
        return LinkOptions(**merged)  # type: ignore[arg-type]  # checked when it is made
'''

# What the reference shows the signature of: programs make the other objects never, or with options.
CALLED = (
    *("Input", "LinkJob", "Linker", "alink", "dlink", "growth", "link", "link_many"),
    *("bench.measure", "bench.read", "dedup.study"),
)

# Public names of modules that must be imported.
APART = ("bench.measure", "bench.read", "bench.Results", "dedup.Analysis", "dedup.study")

# The tables that there are, as the reader gets them, with the rows that they have.
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

# Members of public classes that are there for pylink itself.
INTERNAL = ("add_run", "bare_message", "hide", "input_numbers", "names_place", "short_template")

REFERENCE = "<!-- what follows is generated: python -m pylink.api.generate -->\n"


def offered() -> list[Option]:
    """The options that a call may give, in alphabetical order."""
    options = [option for option in OPTIONS if option.in_call and option.built]
    return sorted(options, key=lambda option: option.attribute.lower())


def argument(option: Option) -> str:
    """What the help calls the argument, without what repeats."""
    return HELP[option.long][0].removesuffix(",...")


def unit(option: Option) -> str:
    """What a number counts, or what a text is; empty for a switch and for one of some words."""
    if option.takes in (FLAG, TRUTH) or (option.choices and option.takes != NUMBER):
        return ""
    return argument(option).strip("<>")


def accepted(option: Option) -> str:
    """The type of the keyword."""
    if option.attribute == "profile":
        return "bool | Path"
    if option.takes in (FLAG, TRUTH):
        return "bool"
    if option.choices:
        return f"Literal[{', '.join(map(_literal, option.choices))}]"
    if option.takes in (NUMBER, SIZE):
        return "int"
    text = "Path" if argument(option) in PATHS else "str"
    return f"{text} | Iterable[{text}]" if option.takes == LIST else text


def held(option: Option) -> tuple[str, str]:
    """The type of the attribute, and the method that reads it."""
    if option.takes == FLAG:
        return "bool", "_flag"
    if option.takes == TRUTH:
        return "bool | None", "_truth"
    if option.takes in (NUMBER, SIZE):
        return "int | None", "_number"
    return ("tuple[str, ...]", "_list") if option.takes == LIST else ("str | None", "_text")


def about(option: Option) -> str:
    """What the option does, with the unit of its value."""
    text = HELP[option.long][1]
    if option.takes in (NUMBER, SIZE) and unit(option):
        text = f"{text} Unit: {unit(option)}."
    return text


def keywords_text() -> str:
    """The module `keywords`."""
    lines = [_keyword_line(name, kind) for name, kind in _keywords()]
    return KEYWORDS_HEAD + "".join(lines)


def _keyword_line(name: str, kind: str) -> str:
    """The annotation of a keyword; one of many words in lines of their own, as ruff has it."""
    line = f"    {name}: {kind} | None\n"
    if len(line) - 1 <= WIDTH:
        return line
    types = kind.removeprefix("Literal[").removesuffix("]")
    return (
        f"    {name}: (\n        Literal[\n            {types}\n        ]\n        | None\n    )\n"
    )


def options_text() -> str:
    """The module `options`."""
    parts = [OPTIONS_HEAD]
    for option in offered():
        kind, method = held(option)
        parts.append(
            f"\n    @property\n    def {option.attribute}(self) -> {kind}:\n"
            f"{_docstring(about(option))}"
            f'        return self.{method}("{option.attribute}")\n'
        )
    return "".join(parts)


def reference_text() -> str:
    """The end of docs/python.md: every public name with its docstring, then all options."""
    parts = [REFERENCE]
    for name in sorted(
        set(pylink.__all__) - {"__version__"}, key=lambda name: (name.lower(), name)
    ):
        parts.append(_about_object(name, getattr(pylink, name)))
    for name in APART:
        parts.append(_about_object(name, resolve_name(f"pylink.{name}")))
    parts.append("\n### Tables\n")
    parts += [_about_table(name, resolve_name(row)) for name, row in TABLES.items()]
    parts.append("\n### Options\n\n| keyword | type | unit | what it does |\n|---|---|---|---|\n")
    for option in offered():
        names = [
            option.attribute,
            *(alias for alias, of in ALIASES.items() if of == option.attribute),
        ]
        kind = accepted(option).replace("|", "\\|")
        cells = (", ".join(f"`{name}`" for name in names), f"`{kind}`", unit(option))
        parts.append(f"| {' | '.join(cells)} | {HELP[option.long][1]} |\n")
    return "".join(parts)


def generated(pages: Path) -> dict[Path, str]:
    """The texts of all that is generated, by file; `pages` is the directory of docs/python.md."""
    page = pages / "python.md"
    written = page.read_text(encoding="utf-8").partition(REFERENCE)[0]
    return {
        PACKAGE / "api" / "keywords.py": keywords_text(),
        PACKAGE / "api" / "options.py": options_text(),
        page: written + reference_text(),
    }


def _keywords() -> list[tuple[str, str]]:
    pairs = [(option.attribute, accepted(option)) for option in offered()]
    types = dict(pairs)
    pairs += [(alias, types[attribute]) for alias, attribute in ALIASES.items()]
    return sorted(pairs, key=lambda pair: pair[0].lower())


def _literal(value: str | int) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def _docstring(text: str) -> str:
    text = text.replace("\\", "\\\\")
    indent = " " * 8
    if len(indent) + len(text) + 2 * len('"""') <= WIDTH:
        return f'{indent}"""{text}"""\n'
    # A formatter puts the closing quotes of a single line on that line: leave room for them.
    width = min(WIDTH - len(indent), len(text) + 2)
    lines = textwrap.wrap(f'"""{text}', width, break_on_hyphens=False)
    return "".join(f"{indent}{line}\n" for line in (*lines, '"""'))


def _about_object(name: str, value: object) -> str:
    """A heading, the signature of what callers call, the docstrings of it and its members."""
    parts = [f"\n### `pylink.{name}`\n\n"]
    if name in CALLED:
        parts.append(f"```\n{name.rpartition('.')[2]}{_signature(value)}\n```\n\n")
    parts.append(f"{inspect.cleandoc(value.__doc__ or '')}\n")
    if isinstance(value, type):
        members = [f"* {text}\n" for text in (*_attributes(value), *_members(value))]
        parts += ["\n", *members] if members else []
    return "".join(parts)


def _about_table(name: str, row: type) -> str:
    """What a row is, and the columns: types as numpy has them, or none, and what numbers count."""
    kinds, units = kinds_of(row), units_of(row)
    lines = [f"\n#### `{name}`\n\n{inspect.cleandoc(row.__doc__ or '')}\n\n"]
    lines.append("| column | dtype | unit |\n|---|---|---|\n")
    for column, kind in kinds.items():
        dtype = f"{kind.numpy} or none" if kind.nullable else kind.numpy
        unit = units[column].name if column in units else ""
        lines.append(f"| `{column}` | {dtype} | {unit} |\n")
    return "".join(lines)


def _attributes(owner: type) -> Iterator[str]:
    """Attributes with a docstring below their annotation, and members of an enumeration."""
    if issubclass(owner, Severity):
        yield from (f"`{statement.name}`: {statement.title}" for statement in owner)
        return
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
    assert isinstance(tree, ast.ClassDef)
    for statement, after in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(statement, ast.AnnAssign) and isinstance(after, ast.Expr):
            assert isinstance(after.value, ast.Constant)
            text = " ".join(str(after.value.value).split())
            yield f"`{ast.unparse(statement.target)}: {ast.unparse(statement.annotation)}`: {text}"


def _members(owner: type) -> Iterator[str]:
    """Methods and properties; those of an object of options stand in the table of these."""
    for name, value in sorted(vars(owner).items()):
        if name.startswith("_") or name in INTERNAL:
            continue
        text = " ".join((inspect.getdoc(value) or "").split())
        if inspect.isfunction(value):
            yield f"`{name}{_signature(value)}`: {text}"
        elif isinstance(value, property) and not issubclass(owner, (OptionValues, Severity)):
            kind = value.fget.__annotations__["return"] if value.fget else ""
            yield f"`{name}: {kind}`: {text}"


class _Words:
    """An annotation that is shown as it was written, without quotes."""

    def __init__(self, text: object) -> None:
        self.text = str(text)

    def __repr__(self) -> str:
        return self.text


def _signature(value: object) -> str:
    signature = inspect.signature(value)  # type: ignore[arg-type]  # functions and classes
    parameters = [
        parameter
        if parameter.annotation is parameter.empty
        else parameter.replace(annotation=_Words(parameter.annotation))
        for parameter in signature.parameters.values()
        if parameter.name != "self"
    ]
    result = signature.empty if isinstance(value, type) else _Words(signature.return_annotation)
    return str(signature.replace(parameters=parameters, return_annotation=result))


def main(pages: Path) -> None:
    """Write what is generated."""
    for _ in range(2):  # the reference shows the signatures that are written first
        for path, text in generated(pages).items():
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs"))
