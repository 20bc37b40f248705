"""Numbers of what a link takes of its inputs. `header.py` makes constants of them for kernels."""

from __future__ import annotations


class Demand:
    """Conditions under which a file is linked."""

    ALWAYS = 0
    SYSTEM = 1  # if functions are undefined at its position, or later symbols that it defines
    NEEDED = 2  # if it defines a symbol that another file needs
    TOGETHER = 3  # with all of its group, if one of them defines a symbol that another file needs


class Codec:
    """Compression of a payload."""

    STORED = 0
    LZ4_BLOCK = 1
    ZSTD_FRAME = 2


class PickState:
    """Whether an entry can be linked."""

    GOOD = 0
    BOTH_CODECS = 1  # it is marked as both LZ4 and Zstandard
    TOO_LARGE = 2  # its payload would exceed what a link may decompress


class PickOrigin:
    """The container that the bytes of a pick are in."""

    FILE = 0  # nothing: the source is linked itself
    FATBIN = 1  # a fat binary that is a file
    HOST = 2  # a fat binary in host code


class EntryKind:
    """Kinds of entries of a fat binary."""

    PTX = 1
    ELF = 2
    LTOIR = 8


# The group with each prefix of native names.
PREFIXES = {
    "DEMAND_": Demand,
    "CODEC_": Codec,
    "PICK_": PickState,
    "ORIGIN_": PickOrigin,
    "ENTRY_": EntryKind,
}
