"""The bytes that an experiment saves in one entry."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Saving:
    """Bytes that an entry loses, and those of the unpacked payload and functions concerned."""

    installed: int
    download: int
    unpacked: int
    functions: set[str] = field(default_factory=set)
    # Whether the mode of the entry is known, since the same bytes come out again.
    exact: bool = True
