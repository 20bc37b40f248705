# The second program of family C: the final file of the linked mercury file (docs/order.md).
#
# It renames the banks of constants, makes the parameters of kernels, and gives the mercury sections
# a place of their own. All names but these stand in the tables already.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memcmp, memcpy, memmove, memset, strlen

from elfnumbers cimport SHT_RELA
from sectionkinds cimport (
    IS_CAPSULE, IS_CODE, IS_ENTRIES, IS_KERNEL_SHARED, IS_PARAMETERS, IS_VARIABLES, KIND,
    K_SYMTAB_SHNDX, KindFacts,
)
from base.elf64 cimport SHN_LORESERVE
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_zeros
from tables.kinds cimport (
    has_twin, is_a, is_function_info, is_merc, is_plain, is_renamed, start_made,
)
from merge.state cimport (
    Head, Merge, code_of, function_kept, head_of, listed, new_symbol, new_twin, out_row,
    unnamed_function_section,
)
from base.nameindex cimport pool_take, strings_append, strings_intern_both
from tables.rows cimport (
    EF_KERNEL, EF_LIVE, E_SYSTEM_SHARED, FILE_WHOLE, M_RELOCATABLE, OF_EMPTY_STAYS, OF_LATE,
    OF_OWN_BYTES, PART_TAIL, SYSTEM_RESERVE, FileRow, OutRow, OutSymbolRow, SectionRow,
)
from base.vector cimport vec_push


cdef inline void make_final_file(Merge* m) noexcept nogil:
    """Make the final file of the mercury file, whose sections, symbols and names stand."""
    rename_sections(m)
    if not m.wide and mercury_count(m) >= SHN_LORESERVE:
        wide_indices(m, True)
    late_constants(m)
    mercury_twins(m)


cdef inline bint gets_final_name(Merge* m, const OutRow* row) noexcept nogil:
    cdef const OutRow* target
    if row.target >= 0 and row.type == SHT_RELA:
        target = out_row(m, row.target)
        if (is_a(target.kind, IS_VARIABLES) and row.head < 0
                and not row.marks & OF_EMPTY_STAYS):
            return False            # not a section of the output; its name stays as it was
        row = target
    return is_renamed(row)


cdef inline void rename_slot(uint8_t* slot) noexcept nogil:
    """Give the name of a constant bank its final form where it stands; zeros fill the rest."""
    cdef size_t size = strlen(<const char*>slot), tail
    cdef size_t prefix = 5 if size > 5 and memcmp(slot, <const char*>b".rela", 5) == 0 else 0
    slot += prefix
    size -= prefix
    if size == 17 and memcmp(slot, <const char*>b".nv.constant.user", 17) == 0:
        memcpy(slot, <const char*>b".nv.constant3\0\0\0\0", 17)
    elif size == 16 and memcmp(slot, <const char*>b".nv.constant.pic", 16) == 0:
        memcpy(slot, <const char*>b".nv.constant4\0\0\0", 16)
    else:
        # Names that two sections share are renamed twice, and lose nine letters each time.
        tail = size - 23 if size > 23 else 0
        memcpy(slot, <const char*>b".nv.constant2.", 14)
        memmove(slot + 14, slot + 23, tail)
        memset(slot + 14 + tail, 0, size - 14 - tail)


cdef inline void rename_sections(Merge* m) noexcept nogil:
    """Final names in .shstrtab; in .strtab new ones for the section symbols of .symtab."""
    cdef size_t i
    cdef OutSymbolRow* symbol
    cdef uint8_t* text
    cdef uint32_t size
    cdef int64_t name
    for i in range(m.columns.outs.count):
        if gets_final_name(m, out_row(m, <int32_t>i)):
            rename_slot(m.columns.shstr.text.data + out_row(m, <int32_t>i).name)
    for i in range(m.columns.out_symbols.count):
        symbol = <OutSymbolRow*>m.columns.out_symbols.data + i
        if symbol.section < 0 or not gets_final_name(m, out_row(m, symbol.section)):
            continue
        size = <uint32_t>strlen(<const char*>m.columns.str.text.data + symbol.name)
        text = pool_take(&m.work.texts, size + 1)
        if text == NULL:
            m.failed = True
            return
        memcpy(text, m.columns.str.text.data + symbol.name, size + 1)
        rename_slot(text)
        name = strings_append(&m.columns.str, text, <uint32_t>strlen(<const char*>text))
        m.failed |= name < 0
        symbol.name = <uint32_t>name


cdef inline void late_constants(Merge* m) noexcept nogil:
    """Family C: .nv.constant0.F come last of all, their section symbols after the globals."""
    cdef Scratch scratch
    cdef int32_t* source
    scratch_init(&scratch)
    source = <int32_t*>scratch_zeros(&scratch, m.merged.entity_count, 4)
    if scratch.failed:
        m.failed = True
    else:
        create_parameters(m, source)
    scratch_free(&scratch)


cdef inline void create_parameters(Merge* m, int32_t* source) noexcept nogil:
    """`late_constants`; `source` is zeros, by entity."""
    cdef size_t i
    cdef int32_t symbol, out, kernel
    cdef int64_t name, symbol_name
    cdef Head head
    cdef const SectionRow* s
    for i in range(m.objects.section_count):
        if is_a(m.objects.sections[i].kind, IS_PARAMETERS):
            kernel = function_kept(m, <int32_t>i)
            if kernel >= 0:
                source[kernel] = <int32_t>i + 1
    # In the order of their kernels' code, which is not that of the first mentions.
    for i in range(m.columns.outs.count):
        kernel = out_row(m, <int32_t>i).entity
        if kernel < 0 or not source[kernel] or not is_a(out_row(m, <int32_t>i).kind, IS_CODE):
            continue
        s = &m.objects.sections[source[kernel] - 1]
        head = head_of(m, s)
        out = unnamed_function_section(m, kernel, &head)
        symbol = new_symbol(m, -1, out, PART_TAIL)
        if out < 0 or symbol < 0 or not strings_intern_both(
                &m.columns.shstr, &m.columns.str, m.objects.arena + s.name, s.name_size, &name,
                &symbol_name):
            m.failed = True
            break
        out_row(m, out).size = s.size
        out_row(m, out).name = <uint32_t>name
        out_row(m, out).symbol_name = <uint32_t>symbol_name
        (<OutSymbolRow*>m.columns.out_symbols.data)[symbol].name = <uint32_t>symbol_name
        m.columns.out_of[source[kernel] - 1] = out


cdef inline void wide_indices(Merge* m, bint late) noexcept nogil:
    """.symtab_shndx, for section numbers that do not fit 16 bits.

    It has had its number and its name from the start, unless only the final file is `late` in need
    of it.
    """
    cdef OutRow* row = <OutRow*>vec_push(&m.columns.outs)
    cdef int64_t name
    if row == NULL:
        m.failed = True
        return
    start_made(row, K_SYMTAB_SHNDX)
    row.created = <uint32_t>m.wide_place + 1
    if not late:
        listed(m, <int32_t>(m.columns.outs.count - 1)).out = <int32_t>(m.columns.outs.count - 1)
        return
    name = strings_append(&m.columns.shstr, <const uint8_t*>b".symtab_shndx", 13)
    m.failed |= name < 0
    row.marks = OF_LATE
    row.name = <uint32_t>name


cdef inline size_t mercury_count(Merge* m) noexcept nogil:
    """Sections of the output of family C, before .nv.constant0.F and most mercury exist."""
    cdef size_t i, count = 4
    cdef const OutRow* row
    for i in range(m.columns.outs.count):
        row = out_row(m, <int32_t>i)
        if is_a(row.kind, IS_CODE):
            count += 2 + (m.merged.entities[row.entity].flags & EF_KERNEL != 0)
        elif is_function_info(row.kind):
            count += 2
        elif is_a(row.kind, IS_ENTRIES):
            count += row.count != 0
        elif not is_a(row.kind, IS_KERNEL_SHARED):
            count += 1
    return count


cdef inline void mercury_twins(Merge* m) noexcept nogil:
    """Family C: the mercury side of what has been created. Debug and relocation twins exist."""
    cdef size_t plain = m.columns.outs.count, i
    cdef uint16_t kind
    cdef int32_t e, out
    cdef const KindFacts* twin
    for i in range(plain):
        kind = out_row(m, <int32_t>i).kind
        twin = &KIND[KIND[kind].twin]
        if (not twin.mercury or twin.brought or twin.trait & ~m.objects.traits
                or not has_twin(kind, out_row(m, <int32_t>i).bank)):
            continue
        out = new_twin(m, <int32_t>i)
        if out < 0:
            return
        out_row(m, out).marks = out_row(m, <int32_t>i).marks & OF_LATE
        if KIND[kind].holds == E_SYSTEM_SHARED:
            out_row(m, out).size = out_row(m, <int32_t>i).size
            if not m.objects.mode & M_RELOCATABLE:
                out_row(m, out).size -= SYSTEM_RESERVE
    for i in range(m.objects.section_count):
        if not is_a(m.objects.sections[i].kind, IS_CAPSULE):
            continue
        e = function_kept(m, <int32_t>i)
        out = code_of(m, e) if e >= 0 else -1
        if out >= 0 and m.merged.entities[e].flags & EF_LIVE:
            out = out_row(m, out).merc
            m.columns.out_of[i] = out
            out_row(m, out).size = m.objects.sections[i].size
            out_row(m, out).source = <int32_t>i
    for i in range(m.objects.file_count):
        if m.objects.files[i].flags & FILE_WHOLE:
            own_variables(m, &m.objects.files[i])


cdef inline void own_variables(Merge* m, const FileRow* file) noexcept nogil:
    """Mercury variables with other bytes than the plain ones, which whole programs (-ewp) have.

    Tables of functions: the plain ones have the places of functions inside of a kernel.
    """
    cdef uint32_t i
    cdef int32_t plain, out
    for i in range(file.first_section, file.first_section + file.section_count):
        if not is_merc(m.objects.sections[i].kind, IS_VARIABLES):
            continue
        plain = plain_variables(m, file, &m.objects.sections[i])
        if plain < 0 or m.objects.sections[plain].offset == m.objects.sections[i].offset:
            continue
        out = m.columns.out_of[plain]
        if out >= 0 and out_row(m, out).merc >= 0:
            take_mercury_variables(m, out)


cdef inline int32_t plain_variables(Merge* m, const FileRow* file,
                                    const SectionRow* mercury) noexcept nogil:
    """The section of a file that has that mercury form, or -1."""
    cdef const SectionRow* plain
    cdef uint32_t i
    for i in range(file.first_section, file.first_section + file.section_count):
        plain = &m.objects.sections[i]
        if (is_plain(plain.kind, IS_VARIABLES) and plain.bank == mercury.bank
                and KIND[plain.kind].twin == mercury.kind):
            return <int32_t>i
    return -1


cdef inline void take_mercury_variables(Merge* m, int32_t plain) noexcept nogil:
    """Give the mercury form of a section the bytes that the files have for it."""
    cdef OutRow* twin = out_row(m, out_row(m, plain).merc)
    cdef const SectionRow* s
    cdef size_t i
    cdef int32_t from_
    if twin.marks & OF_OWN_BYTES:
        return
    twin.marks |= OF_OWN_BYTES
    twin.size = out_row(m, plain).size
    for i in range(m.objects.section_count):
        s = &m.objects.sections[i]
        if not is_merc(s.kind, IS_VARIABLES):
            continue
        from_ = plain_variables(m, &m.objects.files[s.file], s)
        if from_ >= 0 and m.columns.out_of[from_] == plain:
            m.columns.out_of[i] = out_row(m, plain).merc
            m.columns.base[i] = m.columns.base[from_]
