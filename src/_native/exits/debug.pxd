# Debug sections of a file: finds frames, line programs and register ranges of changed kernels, and
# has them corrected (exits/places.pxd, exits/lines.pxd).

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memset

from base.elf64 cimport Rela
from base.nameindex cimport NameIndex, NameSlot, index_find, scratch_index
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_room, scratch_vector
from base.vector cimport Vec
from elfnumbers cimport SHT_PROGBITS, SHT_RELA, STT_SECTION
from exits.file cimport RewrittenFile, has_section_name, section_index_of
from exits.lines cimport Lines, UnitPlace, move_units
from exits.places cimport move_frame, move_registers
from exits.rows cimport (
    R_MEMORY, Code, CodeNumber, InstructionMap, RewriteFault, View, make_writable, set_fault,
)
from relocationtypes cimport R_CUDA_64
from tables.rows cimport FileSectionCounter, FileSectionNumber, FileSymbolRef, SymbolRow

cdef enum:
    TEXT_PREFIX = 6         # bytes of ".text."


cdef inline bint move_frames_of_section(RewrittenFile* file, FileSectionCounter section,
                                        const View* rela, RewriteFault* fault) noexcept nogil:
    """Correct the FDEs of changed kernels in a .debug_frame; False with a fault.

    `rela` is its relocation section, whose rows name the kernel of each FDE.
    """
    cdef const Rela* rows = <const Rela*>rela.rewritten
    cdef uint64_t i
    cdef CodeNumber row
    if make_writable(&file.views[section]) == NULL:
        return set_fault(fault, 0, 0, R_MEMORY)
    for i in range(rela.size // sizeof(Rela)):
        row = file.codes[<FileSymbolRef>rows[i].r_sym]
        if row >= 0 and rows[i].r_type == R_CUDA_64:
            if not move_frame(&file.views[section], section, rows[i].r_offset,
                              <const Code*>file.kernels.data + row,
                              <const InstructionMap*>file.places.data, fault):
                return False
    return True


cdef inline bint move_line_references(RewrittenFile* file, FileSectionCounter section,
                                      const Vec* units, RewriteFault* fault) noexcept nogil:
    """Correct the addends of relocations that refer to the start of a unit in a line section.

    `section` is the line section, which was rebuilt. `units` are UnitPlaces, the old and new
    offset of each of its units. Returns True.
    """
    cdef const UnitPlace* unit = <const UnitPlace*>units.data
    cdef const SymbolRow* symbol
    cdef Rela* rows
    cdef size_t i, low, high, middle
    cdef uint64_t j
    if units.count < 2:
        return True
    for i in range(file.count):
        if file.views[i].kind != SHT_RELA:
            continue
        rows = <Rela*>file.views[i].rewritten
        for j in range(file.views[i].size // sizeof(Rela)):
            symbol = &file.symbols[<FileSymbolRef>rows[j].r_sym]
            if (symbol.info & 0xf != STT_SECTION
                    or section_index_of(file, symbol) != <FileSectionNumber>section):
                continue
            low = 0
            high = units.count
            while low < high:
                middle = (low + high) // 2
                if <int64_t>unit[middle].old < rows[j].r_addend:
                    low = middle + 1
                else:
                    high = middle
            if low < units.count and <int64_t>unit[low].old == rows[j].r_addend:
                rows[j].r_addend = <int64_t>unit[low].new
    return True


cdef inline bint rebuild_lines(RewrittenFile* file, FileSectionCounter section, View* rela,
                               FileSectionCounter rela_index, RewriteFault* fault) noexcept nogil:
    """Rebuild a line section, and correct the references to it; False with a fault.

    `rela` is its relocation section, `rela_index` the index of that in the file.
    """
    cdef View* view = &file.views[section]
    cdef Lines lines
    cdef Vec units
    cdef Scratch scratch
    cdef bint done
    memset(&lines, 0, sizeof(Lines))
    lines.out = <Vec*>scratch_room(&file.scratch, 1, sizeof(Vec))
    if lines.out == NULL:
        return set_fault(fault, 0, 0, R_MEMORY)
    scratch_vector(&file.scratch, lines.out, 1)     # lives as long as the view that gets it
    scratch_init(&scratch)
    scratch_vector(&scratch, &units, sizeof(UnitPlace))
    lines.units = &units
    lines.section = section
    lines.codes = file.codes
    lines.kernels = <const Code*>file.kernels.data
    lines.places = <const InstructionMap*>file.places.data
    done = (not (scratch.failed or file.scratch.failed)
            and move_units(&lines, view, rela, file.symbol_count, rela_index, fault))
    if done:
        view.rewritten = lines.out.data
        view.rewritten_size = lines.out.count
        done = move_line_references(file, section, &units, fault)
    scratch_free(&scratch)
    return done


cdef inline bint move_named_registers(RewrittenFile* file, FileSectionCounter section,
                                      RewriteFault* fault) noexcept nogil:
    """Correct register ranges of changed kernels in .nv_debug_info_reg_sass; False with a fault.

    That section names kernels, so an index of the names of changed kernels is made first.
    """
    cdef const Code* codes = <const Code*>file.kernels.data
    cdef const View* text
    cdef NameIndex names
    cdef NameSlot* slot
    cdef Scratch scratch
    cdef size_t i
    cdef bint done
    scratch_init(&scratch)
    scratch_index(&scratch, &names, file.kernels.count)
    for i in range(0 if scratch.failed else file.kernels.count):
        text = &file.views[codes[i].text]
        slot = index_find(&names, text.name + TEXT_PREFIX, text.name_size - TEXT_PREFIX)
        if slot == NULL:
            scratch.failed = True
            break
        if slot.value < 0:
            slot.value = <int32_t>i
            names.count += 1
    done = (set_fault(fault, 0, 0, R_MEMORY) if scratch.failed
            else move_registers(file, section, &names, fault))
    scratch_free(&scratch)
    return done


cdef inline bint move_debug(RewrittenFile* file, RewriteFault* fault) noexcept nogil:
    """Correct frames, line programs and register ranges of changed kernels; False with a fault."""
    cdef View* view
    cdef size_t i
    cdef bint done = True
    for i in range(file.count):
        view = &file.views[i]
        if view.kind != SHT_RELA or view.info >= file.count or not view.size:
            continue
        if file.views[view.info].kind != SHT_PROGBITS:
            continue
        if has_section_name(&file.views[view.info], b".debug_frame"):
            done = move_frames_of_section(file, view.info, view, fault)
        elif (has_section_name(&file.views[view.info], b".debug_line")
                or has_section_name(&file.views[view.info], b".nv_debug_line_sass")):
            done = rebuild_lines(file, view.info, view, i, fault)
        if not done:
            return False
    for i in range(file.count):
        if (file.views[i].kind != SHT_PROGBITS
                or not has_section_name(&file.views[i], b".nv_debug_info_reg_sass")):
            continue
        if not move_named_registers(file, i, fault):
            return False
    return True
