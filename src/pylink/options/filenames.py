"""Names of files beside the output: %a and %o stand for what tells links of one build apart.

nvcc links once for each architecture, with the same options each time.
"""

from __future__ import annotations

from pylink.options.table import NEVER, OPTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.options.table import Value

SIDE_OPTIONS = tuple(
    option.attribute for option in OPTIONS if option.writes and option.recorded == NEVER
)

# What %o stands for where a link has no output file.
NO_OUTPUT = "linked"


def expand_names(values: dict[str, Value], output: str | None = None) -> None:
    """Put the target for %a, the output file for %o and a percent sign for %% into the names.

    `output` is what %o stands for in a link that has no output file of its own.
    """
    for attribute in SIDE_OPTIONS:
        name = values.get(attribute)
        if isinstance(name, str) and "%" in name:
            values[attribute] = expanded(name, values, output or NO_OUTPUT)


def expanded(name: str, values: dict[str, Value], output: str = NO_OUTPUT) -> str:
    """One name; any other percent sign stays as it is."""
    stands_for = {
        "a": str(values.get("arch") or ""),
        "o": str(values.get("output_file") or output),
        "%": "%",
    }
    expansion, rest = "", name
    while rest:
        plain, percent, rest = rest.partition("%")
        known = percent and rest[:1] in stands_for
        expansion += plain + (stands_for[rest[0]] if known else percent)
        rest = rest[1:] if known else rest
    return expansion
