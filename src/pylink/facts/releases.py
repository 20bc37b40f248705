"""CUDA releases whose objects are linked and whose nvlink the output is that of, oldest first."""

from __future__ import annotations


class Release:
    """One row.

    `toolkit` is the number in notes of objects and output, `tool_strings` the bytes of strings that
    nvlink's own note has before the options. Relocation types are numbered from 0 and, those of
    mercury code, from 0x10000 up to, but without, `relocations` and `mercury_relocations`.
    """

    __slots__ = (
        "mercury_relocations",
        "name",
        "relocations",
        "tool_strings",
        "toolkit",
    )

    def __init__(
        self,
        name: str,
        *,
        toolkit: int,
        tool_strings: int,
        relocations: int,
        mercury_relocations: int,
    ) -> None:
        self.name = name
        self.toolkit = toolkit
        self.tool_strings = tool_strings
        self.relocations = relocations
        self.mercury_relocations = mercury_relocations


RELEASES = (
    Release(
        "13.0",
        toolkit=130,
        tool_strings=97,
        relocations=120,
        mercury_relocations=0x10041,
    ),
)
# What a link writes; `Job.release` is where one link has it from.
CURRENT = RELEASES[-1]
