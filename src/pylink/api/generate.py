"""Writes the keywords, `LinkOptions` and the reference in docs/python.md from the option table.

`python -m pylink.api.generate` writes all of them.
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
# Columns of a line of the generated modules.
WIDTH = 100
# Columns of a signature in one line of the reference, without the name.
SIGNATURE_WIDTH = 70

# Placeholders in help of arguments that are paths.
PATHS = ("<file>", "<directory>", "<file or directory>")

NOTICE = "Generated from the option table: python -m pylink.api.generate."

KEYWORDS_HEAD = f'''\
"""The keywords of a link with their types, for type checkers.

{NOTICE}
"""

from __future__ import annotations

from typing import Literal, TypedDict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylink.api.inputs import Path


class LinkKeywords(TypedDict, total=False):
    """The options that `link` and `Linker` accept as keywords, beside their own parameters.

    `LinkOptions` describes each. None is the default of an option.
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
    """Options for several links; an object cannot be changed.

        options = pylink.LinkOptions(verbose=True, error_limit=10)
        pylink.link(["a.cubin"], options, arch="sm_90a")

    Each option is a keyword and an attribute. The keyword None is an option that is not given. The
    attribute of such an option is its default: False, an empty tuple, or None if the linker
    decides. `lto` is another name of `link_time_opt`. `given` has the options that were given.
    Objects with the same options are equal.

    Raises TypeError for an unknown option and for a value of a wrong type. The values themselves
    are checked by the link.
    """

    __slots__ = ()

    def __init__(self, **keywords: Unpack[LinkKeywords]) -> None:
        self._set_options(keywords)

    def replace(self, **keywords: Unpack[LinkKeywords]) -> LinkOptions:
        """Options with these values; others are copied from this object."""
        merged = {{**self.given, **keywords}}
        return LinkOptions(**merged)  # type: ignore[arg-type]  # checked by the constructor
'''

# Names that the reference shows with a signature. Programs never create the other objects, except
# LinkOptions, whose keywords are in the table of options.
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

REFERENCE = "<!-- what follows is generated: python -m pylink.api.generate -->\n"


def call_options() -> list[Option]:
    """The options that a call accepts, in alphabetical order."""
    options = [option for option in OPTIONS if option.in_call and option.built]
    return sorted(options, key=lambda option: option.attribute.lower())


def placeholder_of(option: Option) -> str:
    """The placeholder of an option's argument in its help; for a list that of one item."""
    return HELP[option.long][0].removesuffix(",...")


def unit_of(option: Option) -> str:
    """The unit of a number, or the meaning of a text; empty for a switch or fixed choices."""
    if option.takes in (FLAG, TRUTH) or (option.choices and option.takes != NUMBER):
        return ""
    return placeholder_of(option).strip("<>")


def keyword_type(option: Option) -> str:
    """The type of an option's keyword, as source text."""
    if option.attribute == "profile":
        return "bool | Path"
    if option.takes in (FLAG, TRUTH):
        return "bool"
    if option.choices:
        return f"Literal[{', '.join(map(_literal, option.choices))}]"
    if option.takes in (NUMBER, SIZE):
        return "int"
    text = "Path" if placeholder_of(option) in PATHS else "str"
    return f"{text} | Iterable[{text}]" if option.takes == LIST else text


def attribute_type(option: Option) -> tuple[str, str]:
    """The type of an option's attribute, and the method of OptionValues that reads it."""
    if option.takes == FLAG:
        return "bool", "_flag"
    if option.takes == TRUTH:
        return "bool | None", "_truth"
    if option.takes in (NUMBER, SIZE):
        return "int | None", "_number"
    return ("tuple[str, ...]", "_list") if option.takes == LIST else ("str | None", "_text")


def help_of(option: Option) -> str:
    """The help of the option, with the unit of its value."""
    text = HELP[option.long][1]
    if option.takes in (NUMBER, SIZE) and unit_of(option):
        text = f"{text} Unit: {unit_of(option)}."
    return text


def keywords_text() -> str:
    """The source text of the module `keywords`."""
    lines = [_keyword_line(name, kind) for name, kind in _keywords()]
    return KEYWORDS_HEAD + "".join(lines)


def _keyword_line(name: str, kind: str) -> str:
    """The annotation of a keyword, formatted like ruff does."""
    line = f"    {name}: {kind} | None\n"
    if len(line) - 1 <= WIDTH:
        return line
    types = kind.removeprefix("Literal[").removesuffix("]")
    return (
        f"    {name}: (\n        Literal[\n            {types}\n        ]\n        | None\n    )\n"
    )


def options_text() -> str:
    """The source text of the module `options`."""
    parts = [OPTIONS_HEAD]
    for option in call_options():
        kind, method = attribute_type(option)
        parts.append(
            f"\n    @property\n    def {option.attribute}(self) -> {kind}:\n"
            f"{_docstring_lines(help_of(option))}"
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


def generated_files(pages: Path) -> dict[Path, str]:
    """The texts of all that is generated, by file; `pages` is the directory of docs/python.md."""
    page = pages / "python.md"
    written_by_hand = page.read_text(encoding="utf-8").partition(REFERENCE)[0]
    return {
        PACKAGE / "api" / "keywords.py": keywords_text(),
        PACKAGE / "api" / "options.py": options_text(),
        page: written_by_hand + reference_text(),
    }


def _keywords() -> list[tuple[str, str]]:
    """Name and type of each keyword, including other names of options, in alphabetical order."""
    pairs = [(option.attribute, keyword_type(option)) for option in call_options()]
    types = dict(pairs)
    pairs += [(alias, types[attribute]) for alias, attribute in ALIASES.items()]
    return sorted(pairs, key=lambda pair: pair[0].lower())


def _literal(value: str | int) -> str:
    """A default value as Python source."""
    return f'"{value}"' if isinstance(value, str) else str(value)


def _docstring_lines(text: str) -> str:
    """A docstring of a method, in lines of at most WIDTH columns."""
    text = text.replace("\\", "\\\\")
    indent = " " * 8
    if len(indent) + len(text) + 2 * len('"""') <= WIDTH:
        return f'{indent}"""{text}"""\n'
    # A formatter puts the closing quotes of a single line on that line: leave room for them.
    width = min(WIDTH - len(indent), len(text) + 2)
    lines = textwrap.wrap(f'"""{text}', width, break_on_hyphens=False)
    return "".join(f"{indent}{line}\n" for line in (*lines, '"""'))


def _about_object(name: str, value: object) -> str:
    """A heading, the signature if the name is in WITH_SIGNATURE, and all docstrings."""
    parts = [f"\n### `pylink.{name}`\n\n"]
    if name in WITH_SIGNATURE:
        parts.append(f"```\n{name.rpartition('.')[2]}{_block_signature(value)}\n```\n\n")
    parts.append(f"{inspect.cleandoc(value.__doc__ or '')}\n")
    if isinstance(value, type):
        members = [f"* {text}\n" for text in (*_attributes(value), *_members(value))]
        parts += ["\n", *members] if members else []
    return "".join(parts)


def _about_table(name: str, row: type) -> str:
    """The docstring of a row, and its columns with their numpy types and units."""
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
    """Yield texts on methods and properties, except options, which a table has."""
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
    """The signature in one line."""
    return str(_public_signature(value))


def _block_signature(value: object) -> str:
    """The signature, with a line for each parameter if it does not fit into one."""
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
    """The parameters and the result of a class or function as in the source, without `self`."""
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


def main(pages: Path) -> None:
    """Write all generated files."""
    for _ in range(2):  # the reference depends on files of the first pass
        for path, text in generated_files(pages).items():
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs"))
