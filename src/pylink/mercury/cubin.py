"""The Mercury sections of a cubin: which of them are compared, and their symbol table.

nvlink compares only sections with the names below. `objects.py` puts them into vectors. In cubins
of sm_100 to sm_120, compilers name the code container `.nv.capmerc.text.F` and write one
`.nv.merc.nv_debug_ptx_txt.HASH` per file.
"""

from __future__ import annotations

import struct

from pylink._native.elfheaders import read_sections
from pylink.facts.elf import EM_CUDA
from pylink.facts.records import RELA, SYM
from pylink.mercury.reasons import show_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink._native.elfheaders import Section

# Families of the Mercury sections whose headers and contents are compared, by the name after
# `.nv.merc.`. In names of SUFFIXED_FAMILIES more text follows, such as the name of a function, and
# is compared, too.
EXACT_FAMILIES = frozenset(
    b"debug_abbrev debug_aranges debug_frame debug_info debug_line debug_loc debug_macinfo "
    b"debug_pubnames debug_pubtypes debug_ranges debug_str nv_debug_line_sass "
    b"nv_debug_info_reg_sass nv_debug_info_reg_type nv_debug_ptx_txt symtab_shndx".split()
)
SUFFIXED_FAMILIES = (b"nv_debug_ptx_txt.", b"nv.shared.reserved.", b"text.")
MERCURY_PREFIX = b".nv.merc."
CAPSULE_PREFIX = b".nv.capmerc.text."
TARGET_PREFIX = b".nv.merc.rela"
SYMTAB = b".nv.merc.symtab"
ATTRIBUTE_SECTION = b".nv.merc.nv.info"

SECTION_KIND = struct.Struct("<IQQQ")  # sh_type, sh_flags, sh_entsize, bytes in the file


class MalformedCubin(ValueError):
    """A file cannot be read as a cubin; the text names the file and what is wrong with it."""


def family_of(name: bytes) -> str | None:
    """Return the section family of a name, such as `debug_line`, or None.

    The family of both forms of code sections is `container`. None means that no headers and
    contents of such sections are compared; relocation sections are compared as targets.
    """
    if name.startswith(CAPSULE_PREFIX):
        return "container"
    if not name.startswith(MERCURY_PREFIX):
        return None
    suffix = name[len(MERCURY_PREFIX) :]
    if suffix in EXACT_FAMILIES:
        return suffix.decode()
    for prefix in SUFFIXED_FAMILIES:
        if suffix.startswith(prefix):
            return "container" if prefix == b"text." else prefix[:-1].decode()
    return None


def sections_of(view: memoryview, file: str) -> list[Section]:
    """Read the sections of a cubin; MalformedCubin for other files, or a section past the end."""
    try:
        elf = read_sections(view)
    except ValueError as error:
        raise MalformedCubin(f"{file}: {error}") from error
    if elf.machine != EM_CUDA:
        raise MalformedCubin(f"{file}: e_machine is {elf.machine}, not EM_CUDA ({EM_CUDA})")
    for index, section in enumerate(elf.sections):
        if section.stored < 0:
            raise MalformedCubin(
                f"{file}: section {index}: {section.size:#x} bytes at "
                f"{section.offset:#x} run past the file"
            )
    return elf.sections


def symbol_table(sections: list[Section], targets: list[Section], file: str) -> Section:
    """Find the `.nv.merc.symtab`, which all `targets` (relocation sections) must link to.

    MalformedCubin if there is not exactly one, or if a size, sh_link or sh_info is wrong.
    """
    tables = [index for index, section in enumerate(sections) if section.name == SYMTAB]
    if len(tables) != 1:
        raise MalformedCubin(f"{file}: {len(tables)} sections {show_name(SYMTAB)} instead of one")
    symtab = sections[tables[0]]
    if symtab.stored % SYM.size or symtab.link >= len(sections):
        raise MalformedCubin(f"{file}: {show_name(SYMTAB)}: bad size or sh_link")
    for target in targets:
        if target.stored % RELA.size:
            raise MalformedCubin(
                f"{file}: {show_name(target.name)}: {target.stored} bytes are not whole entries"
            )
        if target.link != tables[0] or target.info >= len(sections):
            raise MalformedCubin(f"{file}: {show_name(target.name)}: bad sh_link or sh_info")
    return symtab
