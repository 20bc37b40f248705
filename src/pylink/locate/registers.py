"""Finds what limits the registers of a kernel, as far as its cubin tells.

ptxas (13.0, sm_75 to sm_100) writes the limit as MAXREG_COUNT. A kernel with __launch_bounds__ or
__block_size__ has its threads in MAX_THREADS or REQNTID, and then neither `-maxrregcount` nor
__maxnreg__ has an effect. Otherwise __maxnreg__ overrides -maxrregcount. In the section of tool
notes, the note of ptxas has the options of its command line.
"""

from __future__ import annotations

import re
from struct import unpack_from

from pylink.facts import sectionkinds
from pylink.facts.attributes import MAX_THREADS, REQNTID, SVAL
from pylink.tables import file_sections

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.phases.results import Merged, Objects

# The words of source code that set the number of threads, by the attribute that has it.
_BOUNDS = {MAX_THREADS: "__launch_bounds__", REQNTID: "__block_size__"}
_OPTION = re.compile(rb"-?-maxrregcount[ =](\d+)")


def limit_cause(merged: Merged, kernel: int, limit: int) -> str:
    """Return what limits the entity `kernel` to `limit` registers, as a part of a sentence."""
    objects = merged.objects
    section = merged.functions[kernel].info
    if section < 0:
        return "the architecture"
    for number, (x, y, z) in _three_word_records(_contents(objects, section)):
        if number in _BOUNDS:
            return f"its {_BOUNDS[number]} of {x * y * z} threads"
    file = objects.sections[section].file
    options = _notes_of_tools(objects, file)
    if not options:
        return f"__maxnreg__ or the -maxrregcount of '{objects.names[file]}'"
    match = _OPTION.search(options)
    if match is not None and int(match[1]) == limit:
        return f"the -maxrregcount of '{objects.names[file]}'"
    return "its __maxnreg__"


def _three_word_records(info: bytes) -> list[tuple[int, tuple[int, int, int]]]:
    """Return attribute and words of .nv.info records with three words, up to a damaged record."""
    triples = []
    position = 0
    while position + 4 <= len(info):
        form, number, size = unpack_from("<BBH", info, position)
        position += 4
        if form != SVAL:
            continue
        if size == 12 and position + size <= len(info):
            triples.append((number, unpack_from("<3I", info, position)))
        position += (size + 3) // 4 * 4
    return triples


def _notes_of_tools(objects: Objects, file: int) -> bytes:
    """Return the notes of a file's tools, with their options; empty without a note of ptxas."""
    notes = b"".join(
        _contents(objects, row)
        for row in file_sections(objects, file)
        if objects.sections[row].kind == sectionkinds.TKINFO
    )
    return notes if b"\0ptxas\0" in notes else b""


def _contents(objects: Objects, section: int) -> bytes:
    row = objects.sections[section]
    return objects.arena[row.offset : row.offset + row.size]
