"""Sizes of files without some functions, measured by compressing each entry again."""

from __future__ import annotations

from dataclasses import dataclass

from pylink.size.model import WITHOUT
from pylink.terminal.numbers import bytes_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.size.model import Sizes


@dataclass(frozen=True)
class WhatIf:
    """Sizes of all measured files, as they are and without the functions that --what-if names.

    `functions` and `entries` count removed functions, and entries that lose some. `guessed` counts
    the entries whose mode of compression is unknown: their saving is measured at one level of their
    codec. Names that end in _now are sizes with the functions. Outside archives, both downloads are
    None.
    """

    functions: int
    entries: int
    guessed: int
    installed_now: int
    installed: int
    unpacked_now: int
    unpacked: int
    download_now: int | None
    download: int | None


def what_if(sizes: Sizes) -> WhatIf:
    """Sum up the experiment WITHOUT, which `measure` ran for all entries of `sizes`."""
    savings = [leaf.savings[WITHOUT] for leaf in sizes.leaves if WITHOUT in leaf.savings]
    names: set[str] = set().union(*(saving.functions for saving in savings))
    installed = sum(leaf.installed for leaf in sizes.leaves)
    unpacked = sum(leaf.unpacked for leaf in sizes.leaves)
    download = sum(leaf.download or 0 for leaf in sizes.leaves) if sizes.downloads else None
    return WhatIf(
        len(names),
        len(savings),
        sum(not saving.exact for saving in savings),
        installed,
        installed - sum(saving.installed for saving in savings),
        unpacked,
        unpacked - sum(saving.unpacked for saving in savings),
        download,
        None if download is None else download - sum(saving.download for saving in savings),
    )


def what_if_lines(experiment: WhatIf, pattern: str) -> list[tuple[str, ...]]:
    """Return a table: the sizes now, the sizes without the functions, and the differences."""
    table: list[tuple[str, ...]] = [(f"without '{pattern}'", "now", "then", "saved")]
    rows = [("installed", experiment.installed_now, experiment.installed)]
    rows.append(("unpacked", experiment.unpacked_now, experiment.unpacked))
    if experiment.download_now is not None and experiment.download is not None:
        rows.insert(0, ("download", experiment.download_now, experiment.download))
    table += [
        (name, bytes_text(now), bytes_text(then), bytes_text(now - then))
        for name, now, then in rows
    ]
    return table


def what_if_note(experiment: WhatIf) -> str:
    """Return a sentence on how the sizes were measured."""
    if not experiment.entries:
        return "No function matches."
    guessed_text = (
        f"; the mode of {experiment.guessed} is unknown, so the nearest was used"
        if experiment.guessed
        else ""
    )
    return (
        f"{experiment.functions} functions removed from {experiment.entries} entries, "
        f"which were compressed again{guessed_text}."
    )
