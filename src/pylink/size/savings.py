"""The bytes that an experiment saves in one entry."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Saving:
    """The bytes that one entry gets smaller by in an experiment.

    `installed` counts in the file, `download` in the archive, `unpacked` after decompression.
    `functions` are the mangled names of removed functions.
    """

    installed: int
    download: int
    unpacked: int
    functions: set[str] = field(default_factory=set)
    # False if no known mode of compression gives the present size of the entry, so that both sizes
    # are those of another mode.
    exact: bool = True
