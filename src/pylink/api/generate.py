"""Writes the keywords, `LinkOptions` and the reference in docs/python.md from the option table.

`python -m pylink.api.generate` writes all of them.
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

from pylink.api.optiontypes import attribute_type, call_options, help_of, keyword_type
from pylink.api.reference import REFERENCE, reference_text
from pylink.api.values import ALIASES

PACKAGE = Path(__file__).parents[1]
# Columns of a line of the generated modules.
WIDTH = 100
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
        """Return options with these values; others are copied from this object."""
        merged = {{**self.given, **keywords}}
        return LinkOptions(**merged)  # type: ignore[arg-type]  # checked by the constructor
'''


def _keywords_text() -> str:
    """Return the source text of the module `keywords`."""
    lines = [_keyword_line(name, kind) for name, kind in _keywords()]
    return KEYWORDS_HEAD + "".join(lines)


def _keyword_line(name: str, kind: str) -> str:
    """Return the annotation of a keyword with the type `kind`, formatted like ruff does."""
    line = f"    {name}: {kind} | None\n"
    if len(line) - 1 <= WIDTH:
        return line
    types = kind.removeprefix("Literal[").removesuffix("]")
    return (
        f"    {name}: (\n        Literal[\n            {types}\n        ]\n        | None\n    )\n"
    )


def options_text() -> str:
    """Return the source text of the module `options`."""
    parts = [OPTIONS_HEAD]
    for option in call_options():
        kind, method = attribute_type(option)
        parts.append(
            f"\n    @property\n    def {option.attribute}(self) -> {kind}:\n"
            f"{_docstring_lines(help_of(option))}"
            f'        return self.{method}("{option.attribute}")\n'
        )
    return "".join(parts)


def generated_files(pages: Path) -> dict[Path, str]:
    """Return the texts of all that is generated, by file.

    `pages` is the directory of docs/python.md.
    """
    page = pages / "python.md"
    written_by_hand = page.read_text(encoding="utf-8").partition(REFERENCE)[0]
    return {
        PACKAGE / "api" / "keywords.py": _keywords_text(),
        PACKAGE / "api" / "options.py": options_text(),
        page: written_by_hand + reference_text(),
    }


def _keywords() -> list[tuple[str, str]]:
    """Return name and type of each keyword, also of ALIASES, in alphabetical order."""
    pairs = [(option.attribute, keyword_type(option)) for option in call_options()]
    types = dict(pairs)
    pairs += [(alias, types[attribute]) for alias, attribute in ALIASES.items()]
    return sorted(pairs, key=lambda pair: pair[0].lower())


def _docstring_lines(text: str) -> str:
    """Return a docstring of a method, in lines of at most WIDTH columns."""
    text = text.replace("\\", "\\\\")
    indent = " " * 8
    if len(indent) + len(text) + 2 * len('"""') <= WIDTH:
        return f'{indent}"""{text}"""\n'
    # A formatter moves closing quotes to the end of a docstring's only line, where there is no room
    # for them. With this width, the text takes at least two lines.
    width = min(WIDTH - len(indent), len(text) + 2)
    lines = textwrap.wrap(f'"""{text}', width, break_on_hyphens=False)
    return "".join(f"{indent}{line}\n" for line in (*lines, '"""'))


def main(pages: Path) -> None:
    """Write all generated files."""
    for _ in range(2):  # the reference depends on files of the first pass
        for path, text in generated_files(pages).items():
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs"))
