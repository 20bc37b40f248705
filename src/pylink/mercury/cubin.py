"""The Mercury sections of a cubin: which enter which vector, and the symbols they use.

Which names take part, and that any other `.nv.merc.` name never enters a vector, is a property of
nvlink's comparison; that today's compilers write the code container as `.nv.capmerc.text.F` and one
`.nv.merc.nv_debug_ptx_txt.HASH` a file was seen in cubins of sm_100 to sm_120.
"""

from __future__ import annotations

import struct

from pylink._native.elfheaders import read_sections
from pylink.facts.elf import EM_CUDA
from pylink.facts.records import RELA
from pylink.mercury.reasons import show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink._native.elfheaders import Section

# Families whose sections enter the header and primary vectors, by the rest of the name after
# `.nv.merc.`; SUFFIXED ones contain a suffix that takes part in the comparison.
EXACT = frozenset(
    b"debug_abbrev debug_aranges debug_frame debug_info debug_line debug_loc debug_macinfo "
    b"debug_pubnames debug_pubtypes debug_ranges debug_str nv_debug_line_sass "
    b"nv_debug_info_reg_sass nv_debug_info_reg_type nv_debug_ptx_txt symtab_shndx".split()
)
SUFFIXED = (b"nv_debug_ptx_txt.", b"nv.shared.reserved.", b"text.")
PREFIX = b".nv.merc."
CAPSULE = b".nv.capmerc.text."
TARGETS = b".nv.merc.rela"
SYMTAB = b".nv.merc.symtab"
ATTRIBUTES = b".nv.merc.nv.info"

KIND = struct.Struct("<IQQQ")  # sh_type, sh_flags, sh_entsize, bytes in the file
SYM_SIZE = 24


class MalformedCubin(ValueError):
    """A file that cannot be read as a cubin; the text names file and place."""


def family(name: bytes) -> str | None:
    """The family by which a section enters the header vector, or None."""
    if name.startswith(CAPSULE):
        return "container"
    if not name.startswith(PREFIX):
        return None
    rest = name[len(PREFIX) :]
    if rest in EXACT:
        return rest.decode()
    for prefix in SUFFIXED:
        if rest.startswith(prefix):
            return "container" if prefix == b"text." else prefix[:-1].decode()
    return None


def sections_of(view: memoryview, file: str) -> list[Section]:
    """The sections of a cubin; MalformedCubin for what is none, or where one is not in it."""
    try:
        _, machine, sections = read_sections(view)
    except ValueError as error:
        raise MalformedCubin(f"{file}: {error}") from error
    if machine != EM_CUDA:
        raise MalformedCubin(f"{file}: e_machine is {machine}, not EM_CUDA ({EM_CUDA})")
    for index, section in enumerate(sections):
        if section.stored < 0:
            raise MalformedCubin(
                f"{file}: section {index}: {section.size:#x} bytes at "
                f"{section.offset:#x} run past the file"
            )
    return sections


def symbol_table(sections: list[Section], targets: list[Section], file: str) -> Section:
    """The `.nv.merc.symtab`, which all relocation sections must name."""
    tables = [index for index, section in enumerate(sections) if section.name == SYMTAB]
    if len(tables) != 1:
        raise MalformedCubin(f"{file}: {len(tables)} sections {show(SYMTAB)} instead of one")
    symtab = sections[tables[0]]
    if symtab.stored % SYM_SIZE or symtab.link >= len(sections):
        raise MalformedCubin(f"{file}: {show(SYMTAB)}: bad size or sh_link")
    for target in targets:
        if target.stored % RELA.size:
            raise MalformedCubin(
                f"{file}: {show(target.name)}: {target.stored} bytes are not whole entries"
            )
        if target.link != tables[0] or target.info >= len(sections):
            raise MalformedCubin(f"{file}: {show(target.name)}: bad sh_link or sh_info")
    return symtab
