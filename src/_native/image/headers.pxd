# Section headers, the ELF header, and the one section whose bytes repeat some of them.

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset, strlen

from base.elf64 cimport EM_CUDA, ET_EXEC, ET_REL, SHN_LORESERVE, Ehdr, Phdr, Shdr, round_up
from base.texts cimport put_text
from base.vector cimport Vec
from elfnumbers cimport SHT_STRTAB
from image.windows cimport Window, list_rows
from image.writer cimport Writer, index_of, text_index, text_row_of
from sectionkinds cimport (
    HEAD_CAPSULE, HEAD_COMPAT, HEAD_FUNCTION, HEAD_LOCALS, HEAD_MERC_SYMTAB, HEAD_STRTAB,
    HEAD_SYMTAB, HEAD_TARGET, HEAD_TEXT, HEAD_TKINFO, IS_CODE, IS_ENTRIES, IS_PARAMETERS, KIND,
    K_COMPAT, K_CUINFO, K_MERC_SYMTAB, K_MERC_SYSTEM_SHARED, K_SHSTRTAB, K_STRTAB, K_SYSTEM_SHARED,
    K_TKINFO, KindFacts,
)
from tables.kinds cimport is_a, is_nobits, is_renamed, shrinks
from tables.rows cimport OutRow, PlaceRow
from traits cimport TRAIT_MERCURY, TRAIT_REGCOUNT_INFO

cdef enum:
    HEADERS = -1                # what windows of section headers are; others are of a kind


cdef inline uint64_t early_strings_size(Writer* writer, uint64_t size) noexcept nogil:
    """The bytes of .strtab before the names of constant banks end it."""
    cdef const OutRow* row
    cdef uint64_t banks = 0
    cdef size_t i
    for i in range(writer.placed.section_order_count):
        row = &writer.placed.outs[writer.placed.section_order[i]]
        if is_a(row.kind, IS_PARAMETERS):
            size = min(size, <uint64_t>row.symbol_name)
        elif is_renamed(row):
            banks += strlen(<const char*>writer.placed.strtab + row.symbol_name) - shrinks(row) + 1
    return size - banks


cdef inline bint is_late(const OutRow* row) noexcept nogil:
    """Whether the second program makes it, which the mercury file ends before."""
    return row.twin >= 0 or is_a(row.kind, IS_PARAMETERS)


cdef inline uint64_t early_size(Writer* writer, int32_t section, uint64_t names, int64_t note,
                                uint32_t late_compat) noexcept nogil:
    """The bytes of a section in the mercury file, of which `names` are those of .shstrtab."""
    cdef const OutRow* row = &writer.placed.outs[section]
    cdef uint64_t size = writer.placed.places[section].size
    if is_nobits(row):
        return 0
    if row.kind == K_SHSTRTAB:
        return names
    if row.kind == K_STRTAB:
        return early_strings_size(writer, size)
    if row.kind == K_TKINFO:
        return size + note
    if row.kind == K_COMPAT:
        return size - late_compat
    if is_a(row.kind, IS_CODE):
        return writer.objects.symbols[writer.merged.entities[row.entity].winner].merc_size
    if row.merc >= 0:
        return writer.placed.places[row.merc].size
    return 0 if is_a(row.kind, IS_ENTRIES) else size


cdef inline uint64_t copy_header_bytes(Writer* writer, int64_t note, uint32_t late_compat,
                                       Shdr* head, uint64_t* start) noexcept nogil:
    """Copy the bytes of .nv.merc.nv.shared.reserved.0 that are not zero: (part of) three headers.

    Returns how many; `start` gets their offset.

    The plain section has no bytes, so nvlink copies the bytes after its offset in the mercury file
    that its finalizer starts from: after all sections without bytes, the section header table,
    which begins with a null header and those of .shstrtab and .strtab. docs/format-notes.md says
    how that file is laid out. nvlink's own note is longer than ours by `note` bytes, and the
    finalizer adds `late_compat` bytes to .nv.compat.
    """
    cdef const PlaceRow* place = &writer.placed.places[writer.only[K_MERC_SYSTEM_SHARED]]
    cdef uint64_t end = sizeof(Ehdr), plain = 0
    cdef const OutRow* row
    cdef int32_t section
    cdef size_t i
    memset(head, 0, 3 * sizeof(Shdr))
    head[1].sh_name = 1
    head[1].sh_type = SHT_STRTAB
    head[1].sh_offset = sizeof(Ehdr)
    head[1].sh_size = place.name
    head[1].sh_addralign = 1
    for i in range(writer.placed.section_order_count):
        section = writer.placed.section_order[i]
        if is_late(&writer.placed.outs[section]) and writer.placed.places[section].name:
            head[1].sh_size = min(head[1].sh_size, <uint64_t>writer.placed.places[section].name)
    head[2].sh_name = 11        # after the name of .shstrtab
    head[2].sh_type = SHT_STRTAB
    head[2].sh_offset = head[1].sh_offset + head[1].sh_size
    for i in range(writer.placed.section_order_count):
        section = writer.placed.section_order[i]
        row = &writer.placed.outs[section]
        if is_late(row):
            continue
        end = round_up(end, 16 if is_a(row.kind, IS_CODE) else row.align)
        if row.kind == K_SYSTEM_SHARED:
            plain = end
        end += early_size(writer, section, head[1].sh_size, note, late_compat)
    end = round_up(end, 8) - plain
    start[0] = place.offset + end
    return min(<uint64_t>(3 * sizeof(Shdr)), place.size - end) if end < place.size else 0


cdef inline uint32_t head_value(Writer* writer, const OutRow* row, uint8_t rule) noexcept nogil:
    """Return sh_link or sh_info; mercury sections name the mercury forms."""
    cdef bint mercury = KIND[row.kind].mercury
    cdef const OutRow* plain = &writer.placed.outs[row.twin] if mercury else row
    if rule == HEAD_STRTAB:
        return 2
    if rule == HEAD_SYMTAB:
        return 3
    if rule == HEAD_MERC_SYMTAB:
        return index_of(writer, K_MERC_SYMTAB)
    if rule == HEAD_TKINFO:
        return index_of(writer, K_TKINFO)
    if rule == HEAD_COMPAT:
        return index_of(writer, K_COMPAT)
    if rule == HEAD_TEXT:
        return text_index(writer, row)
    if rule == HEAD_CAPSULE:
        return mercury_index(writer, text_row_of(plain))
    if rule == HEAD_FUNCTION:
        return writer.placed.symbol_index[plain.entity]
    if rule == HEAD_LOCALS:
        return writer.locals[mercury]
    if rule == HEAD_TARGET:
        return (mercury_index(writer, plain.target) if mercury
                else writer.placed.section_index[plain.target])
    return 0


cdef inline uint32_t mercury_index(Writer* writer, int32_t plain) noexcept nogil:
    cdef int32_t twin = writer.placed.outs[plain].merc
    return writer.placed.section_index[twin] if twin >= 0 else 0


cdef inline void write_section_header(Writer* writer, int32_t section, Shdr* out) noexcept nogil:
    """Write the header of one section."""
    cdef const OutRow* row = &writer.placed.outs[section]
    cdef const KindFacts* facts = &KIND[row.kind]
    memset(out, 0, sizeof(Shdr))
    out.sh_name = writer.placed.places[section].name
    out.sh_type = facts.program if writer.objects.executable and facts.program else row.type
    out.sh_flags = row.flags
    out.sh_offset = writer.placed.places[section].offset
    out.sh_size = writer.placed.places[section].size
    out.sh_addralign = row.align
    out.sh_entsize = row.entsize
    out.sh_link = head_value(writer, row, facts.link)
    out.sh_info = head_value(writer, row, facts.info)
    if writer.objects.traits & TRAIT_REGCOUNT_INFO and is_a(row.kind, IS_CODE) and row.source >= 0:
        # The function's own REGCOUNT, not what its callees raise it to.
        out.sh_info |= writer.objects.sections[row.source].info & 0xff000000U


cdef inline bint list_headers(Vec* windows, Writer* writer) noexcept nogil:
    """Windows of the table of sections; False without memory."""
    return list_rows(windows, writer.placed.table_offset, sizeof(Shdr),
                     writer.placed.section_order_count + 1, HEADERS)


cdef inline void make_headers(Writer* writer, const Window* window, Shdr* to) noexcept nogil:
    """Rows `first` to `last` of the table; the first may have the number of all."""
    cdef size_t i
    for i in range(window.first, window.last):
        if i:
            write_section_header(writer, writer.placed.section_order[i - 1], &to[i - window.first])
            continue
        memset(to, 0, sizeof(Shdr))
        if writer.placed.section_order_count + 1 >= SHN_LORESERVE:
            to.sh_size = writer.placed.section_order_count + 1


cdef inline void start_header(Ehdr* header, Writer* writer, uint64_t segments) noexcept nogil:
    """The ELF header without what only the release and the target say."""
    cdef uint32_t cuinfo = index_of(writer, K_CUINFO)
    memset(header, 0, sizeof(Ehdr))
    put_text(header.e_ident, b"\x7fELF\x02\x01\x01")
    header.e_type = ET_EXEC if writer.objects.executable else ET_REL
    header.e_machine = EM_CUDA
    header.e_shoff = writer.placed.table_offset
    if not writer.objects.traits & TRAIT_MERCURY:
        cuinfo = min(cuinfo, <uint32_t>0xff)
    header.e_flags = cuinfo << 24
    header.e_ehsize = sizeof(Ehdr)
    header.e_shentsize = sizeof(Shdr)
    header.e_shstrndx = 1
    if segments:
        header.e_phoff = (writer.placed.table_offset + (writer.placed.section_order_count + 1)
                          * sizeof(Shdr))
        header.e_phnum = <uint16_t>segments
    if segments or not writer.objects.traits & TRAIT_MERCURY:
        header.e_phentsize = sizeof(Phdr)
    if writer.placed.section_order_count + 1 < SHN_LORESERVE:
        header.e_shnum = <uint16_t>(writer.placed.section_order_count + 1)
