"""Names of files beside the output: %a and %o are replaced by the target and the output file.

nvcc links once for each architecture with the same options. %a and %o give each link its own files.
"""

from __future__ import annotations

from pylink.options.table import NEVER, OPTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.options.table import Value

# Attributes of pylink's own options that name a file to write. In names of nvlink's options, such
# as --time, %a and %o are not replaced.
SIDE_OPTIONS = tuple(
    option.attribute for option in OPTIONS if option.writes and option.recorded == NEVER
)

# The replacement of %o in a link without an output file.
NO_OUTPUT = "linked"


def expand_names(values: dict[str, Value], output: str | None = None) -> None:
    """Replace %a by the target, %o by the output file and %% by a percent sign, in file names.

    `values` are changed in place. `output` replaces %o in a link that has no output file of its own
    (default: NO_OUTPUT).
    """
    for attribute in SIDE_OPTIONS:
        name = values.get(attribute)
        if isinstance(name, str) and "%" in name:
            values[attribute] = _expand_name(name, values, output or NO_OUTPUT)


def _expand_name(name: str, values: dict[str, Value], output: str = NO_OUTPUT) -> str:
    """Return a name with %a (target), %o (output file) and %% replaced; other percent signs stay.

    `output` replaces %o if the link has no output file.
    """
    replacements = {
        "a": str(values.get("arch") or ""),
        "o": str(values.get("output_file") or output),
        "%": "%",
    }
    expansion, remaining = "", name
    while remaining:
        plain, percent, remaining = remaining.partition("%")
        is_known = percent and remaining[:1] in replacements
        expansion += plain + (replacements[remaining[0]] if is_known else percent)
        remaining = remaining[1:] if is_known else remaining
    return expansion
