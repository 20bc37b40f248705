"""Entries of fat binaries, and the compiler options that they record."""

from __future__ import annotations

import struct

from pylink.facts.picknumbers import EntryKind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.diagnostics import Sink
    from pylink.inputs.compileinputs import CompileInput

FATBIN_MAGIC = b"\x50\xed\x55\xba"

# Sections of host files with fat binaries: of linked code, and of code that is still to be linked.
LINKED_SECTION, RELOCATABLE_SECTION = ".nv_fatbin", "__nv_relfatbin"
FATBIN_SECTIONS = (LINKED_SECTION, RELOCATABLE_SECTION)

# Names of symbols of a module in host code: the function that registers it, and the wrapper of its
# fat binary. The module id follows the prefix.
REGISTER_PREFIX = b"__cudaRegisterLinkedBinary"
WRAPPER_PREFIX = b"__fatbinwrap"

# Header of a container: magic, version, its own size, bytes of the entries after it.
CONTAINER = struct.Struct("<4sHHQ")

# Header of an entry; `EntryHeader` in headers.py names the fields, docs/inputs.md explains them.
ENTRY = struct.Struct("<HHIQIIHHIIIQQQ")
ENTRY_MARK = 0x101
CUBIN_VERSION = (8, 1)  # minor and major, of an entry with a cubin

FLAG_64_BIT = 0x1  # addresses have 64 bits
FLAG_DEBUG = 0x2  # compiled with -G
FLAG_LINUX = 0x10
FLAG_LZ4 = 0x2000  # the payload is compressed
FLAG_ZSTD = 0x8000  # the payload is compressed
FLAGS_OF_CODECS = FLAG_LZ4 | FLAG_ZSTD
FLAG_CHIP = 0x100000  # the architecture has the suffix `a`
FLAG_FAMILY = 0x200000  # the architecture has the suffix `f`
FLAG_COMPATIBLE = 0x1000000  # a block in the header is a copy of the cubin's .nv.compat
FLAGS_OF_SUFFIXES = FLAG_CHIP | FLAG_FAMILY
FLAG_SUFFIX = {"": 0, "a": FLAG_CHIP, "f": FLAG_FAMILY}

# Options of the compilation to LTO-IR that must be the same for all modules.
UNIFORM_OPTIONS = ("-ftz", "-prec_div", "-prec_sqrt", "-fmad")
LINE_INFO = "-generate-line-info"


def is_fatbin(data: bytes) -> bool:
    return data.startswith(FATBIN_MAGIC)


def container_header(size: int) -> bytes:
    """Return the header of a container whose entries have `size` bytes together."""
    return CONTAINER.pack(FATBIN_MAGIC, 1, CONTAINER.size, size)


def padding(size: int) -> bytes:
    """Return the zeros after a part of `size` bytes: parts of a container are aligned to 8."""
    return bytes(-size % 8)


def suffix_of(flags: int) -> str:
    """Return the suffix of an entry's architecture by its flags: `a`, `f` or nothing."""
    return "a" if flags & FLAG_CHIP else "f" if flags & FLAG_FAMILY else ""


def is_scrambled(entry: bytes | memoryview) -> bool:
    """Return whether an entry is LTO-IR that only nvJitLink can read: its header has a key."""
    kind, *_, key, _ = ENTRY.unpack_from(entry)
    return bool(kind == EntryKind.LTOIR and key != 0)


def pack_entry(entry: memoryview) -> bytes:
    """Return a fat binary with this entry only."""
    return container_header(len(entry)) + entry


def recorded_options(entry: bytes | memoryview) -> str:
    """Return the compiler options that an entry records; "" for no options or a damaged entry."""
    try:
        # Offset 4 is that of `header_size` in an ENTRY. The block has the offset (in the entry) and
        # the size of the text.
        header_size, _, _, block_offset = struct.unpack_from("<IQII", entry, 4)
        if not block_offset:
            return ""
        start, size = struct.unpack_from("<II", entry, block_offset)
    except struct.error:
        return ""
    if start > header_size or size > header_size - start:
        return ""
    text = bytes(entry[start : start + size])
    return text.rstrip(b"\0").decode("utf-8", "replace")


def check_entries(modules: Sequence[CompileInput], sink: Sink) -> None:
    """Refuse modules of LTO-IR whose UNIFORM_OPTIONS differ, with a fatal diagnostic.

    Warn if only some of them have line information. Modules that are not fat binaries record no
    options and are skipped.
    """
    option_lists = [
        recorded_options(memoryview(module.data)[CONTAINER.size :]).split()
        for module in modules
        if is_fatbin(module.data)
    ]
    value_of: dict[str, str] = {}  # the first value of each option, by its name
    for option_list in option_lists:
        for option in option_list:
            name, equals, value = option.partition("=")
            if equals and name in UNIFORM_OPTIONS and value_of.setdefault(name, value) != value:
                sink.fatal("lto-options-differ", option=name.replace("_", "-"))
    have_lines = [LINE_INFO in option_list for option_list in option_lists]
    if any(have_lines) and not all(have_lines):
        sink.report("lto-line-info")
