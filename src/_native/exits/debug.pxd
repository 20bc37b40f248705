# The debug sections of a file: frames, line programs and register ranges of changed kernels.

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memset

from elfnumbers cimport SHT_PROGBITS, SHT_RELA
from tables.rows cimport SymbolRow
from base.elf64 cimport STT_SECTION, Rela
from exits.file cimport File, home_of, is_named
from exits.lines cimport Lines, UnitPlace, move_units
from exits.places cimport move_frame, move_registers
from exits.rows cimport R_MEMORY, Code, Fault, Place, View, editable, fail
from base.nameindex cimport NameIndex, NameSlot, index_find, index_free, index_init
from relocationtypes cimport R_CUDA_64
from base.vector cimport Vec, vec_free, vec_init

cdef enum:
    TEXT_PREFIX = 6         # bytes of ".text."


cdef inline bint move_frames(File* file, size_t section, const View* rela,
                             Fault* fault) noexcept nogil:
    cdef const Rela* rows = <const Rela*>rela.fresh
    cdef uint64_t i
    cdef int32_t row
    if editable(&file.views[section]) == NULL:
        return fail(fault, 0, 0, R_MEMORY)
    for i in range(rela.size // sizeof(Rela)):
        row = file.codes[rows[i].r_sym]
        if row >= 0 and rows[i].r_type == R_CUDA_64:
            if not move_frame(&file.views[section], section, rows[i].r_offset,
                              <const Code*>file.kernels.data + row,
                              <const Place*>file.places.data, fault):
                return False
    return True


cdef inline bint move_line_references(File* file, size_t section, const Vec* units,
                                      Fault* fault) noexcept nogil:
    """Correct addends against a rebuilt line section: they name the start of a unit."""
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
        rows = <Rela*>file.views[i].fresh
        for j in range(file.views[i].size // sizeof(Rela)):
            symbol = &file.symbols[rows[j].r_sym]
            if symbol.info & 0xf != STT_SECTION or home_of(file, symbol) != <int32_t>section:
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


cdef inline bint rebuild_lines(File* file, size_t section, View* rela, size_t rela_at,
                               Fault* fault) noexcept nogil:
    """Rebuild a line section, and correct those who refer to it."""
    cdef View* view = &file.views[section]
    cdef Lines lines
    cdef Vec out, units
    cdef inline bint done
    memset(&lines, 0, sizeof(Lines))
    vec_init(&out, 1)
    vec_init(&units, sizeof(UnitPlace))
    lines.section = section
    lines.codes = file.codes
    lines.kernels = <const Code*>file.kernels.data
    lines.places = <const Place*>file.places.data
    lines.out = &out
    done = move_units(&lines, view, rela, file.symbol_count, rela_at, &units, fault)
    if done:
        free(view.fresh)
        view.fresh = out.data
        view.fresh_size = out.count
        done = move_line_references(file, section, &units, fault)
    else:
        vec_free(&out)
    vec_free(&units)
    return done


cdef inline bint move_debug(File* file, Fault* fault) noexcept nogil:
    """Correct frames, line programs and register ranges."""
    cdef View* view
    cdef NameIndex names
    cdef NameSlot* slot
    cdef const Code* codes = <const Code*>file.kernels.data
    cdef size_t i, j
    cdef inline bint done = True
    for i in range(file.count):
        view = &file.views[i]
        if view.kind != SHT_RELA or view.info >= file.count or not view.size:
            continue
        if file.views[view.info].kind != SHT_PROGBITS:
            continue
        if is_named(&file.views[view.info], b".debug_frame", 12):
            done = move_frames(file, view.info, view, fault)
        elif (is_named(&file.views[view.info], b".debug_line", 11)
                or is_named(&file.views[view.info], b".nv_debug_line_sass", 19)):
            done = rebuild_lines(file, view.info, view, i, fault)
        if not done:
            return False
    for i in range(file.count):
        if (file.views[i].kind != SHT_PROGBITS
                or not is_named(&file.views[i], b".nv_debug_info_reg_sass", 23)):
            continue
        if not index_init(&names, file.kernels.count):
            return fail(fault, 0, 0, R_MEMORY)
        for j in range(file.kernels.count):
            view = &file.views[codes[j].text]
            slot = index_find(&names, view.name + TEXT_PREFIX, view.name_size - TEXT_PREFIX)
            if slot != NULL and slot.value < 0:
                slot.value = <int32_t>j
                names.count += 1
        done = move_registers(&file.views[i], i, &names, codes,
                              <const Place*>file.places.data, file.early, file.update,
                              fault)
        index_free(&names)
        if not done:
            return False
    return True
