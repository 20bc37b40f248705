"""Numbers that say which files and entries a link takes from its inputs.

`header.py` makes constants of them for native code.
"""

from __future__ import annotations


class Demand:
    """Conditions under which a file is linked."""

    ALWAYS = 0
    # A file of the device runtime: if a function that files before it call is undefined so far, or
    # as for NEEDED.
    SYSTEM = 1
    NEEDED = 2  # if it defines a symbol that another file needs
    # A member of an archive: all such members are linked if another file needs a symbol that one
    # of them defines. If no file would be linked otherwise, those of all archives are.
    TOGETHER = 3


class Codec:
    """Compression of the payload of an entry of a fat binary."""

    STORED = 0
    LZ4_BLOCK = 1
    ZSTD_FRAME = 2


class PickState:
    """Reasons why an entry of a fat binary cannot be linked; GOOD for one that can."""

    GOOD = 0
    BOTH_CODECS = 1  # it is marked as both LZ4 and Zstandard
    TOO_LARGE = 2  # its payload would exceed what a link may decompress


class PickOrigin:
    """The container that the bytes of a pick are in.

    A pick is what a link takes from one source: the file itself, or one entry of its fat binary.
    """

    FILE = 0  # no container: the source itself is linked
    FATBIN = 1  # a fat binary that is a file
    HOST = 2  # a fat binary in host code


class EntryKind:
    """Kinds of entries of a fat binary."""

    PTX = 1
    ELF = 2
    LTOIR = 8


class LibraryState:
    """Results of reading a shared library."""

    NO_CODE = 0  # not a shared library, or one with neither relocatable code nor a device link
    HAS_CODE = 1
    BAD_SYMBOLS = 2  # the dynamic symbols lie outside the file
    BAD_NAME = 3  # the name of a dynamic symbol lies outside the string table


class DynamicKind:
    """Kinds of rows about a shared library: its dynamic symbols (ID is a module id) and modules."""

    OPEN = 1  # __cudaRegisterLinkedBinary<ID>, undefined: a later device link registers the module
    CLOSED = 2  # __cudaRegisterLinkedBinary<ID>, defined: the library was device-linked with it
    WRAPPER = 3  # __fatbinwrap<ID>, defined: the module's fat binary is in the library
    ANCHOR = 4  # the first function that it exports and that is not weak, except _init and _fini
    MODULE = 5  # a module in the file, whose id the section `__nv_module_id` names


# The class whose numbers have each prefix in native code.
PREFIXES = {
    "DEMAND_": Demand,
    "CODEC_": Codec,
    "PICK_": PickState,
    "ORIGIN_": PickOrigin,
    "ENTRY_": EntryKind,
    "LIBRARY_": LibraryState,
    "DYNAMIC_": DynamicKind,
}
