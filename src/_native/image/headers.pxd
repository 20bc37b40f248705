# Section headers, the ELF header, and .nv.merc.nv.shared.reserved.0, whose bytes repeat some of
# the section headers.
#
# From sm_100 on nvlink writes two files: the linked mercury file, then the final file, which a
# "second program" makes from the first (docs/order.md). "Early" is what the mercury file has,
# "late" what the second program adds.

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset, strlen

from base.elf64 cimport Ehdr, Phdr, Shdr, round_up
from base.prefetch cimport AHEAD, prefetch
from base.texts cimport put_text
from base.vector cimport Vec
from elfnumbers cimport EM_CUDA, ET_EXEC, ET_REL, SHN_LORESERVE, SHT_STRTAB
from image.windows cimport Window, list_rows
from image.writer cimport Writer, index_of, text_index, text_row_of
from sectionkinds cimport (
    HEAD_CAPSULE, HEAD_COMPAT, HEAD_FUNCTION, HEAD_LOCALS, HEAD_MERC_SYMTAB, HEAD_STRTAB,
    HEAD_SYMTAB, HEAD_TARGET, HEAD_TEXT, HEAD_TKINFO, IS_CODE, IS_ENTRIES, IS_PARAMETERS, KIND,
    K_COMPAT, K_CUINFO, K_MERC_SYMTAB, K_MERC_SYSTEM_SHARED, K_SHSTRTAB, K_STRTAB, K_SYSTEM_SHARED,
    K_TKINFO, KindFacts,
)
from tables.kinds cimport bytes_shrunk, is_a, is_nobits, is_renamed
from tables.rows cimport OutNumber, OutRow, PlaceRow
from traits cimport TRAIT_MERCURY, TRAIT_REGCOUNT_INFO

cdef enum:
    HEADERS = -1                # `kind` of windows of section headers
    SHSTRTAB_INDEX = 1          # header indices of the three sections that come first
    STRTAB_INDEX = 2
    SYMTAB_INDEX = 3
    FIRST_HEADERS = 3           # the null header and those of .shstrtab and .strtab
    SHSTRTAB_NAME = 10          # bytes of the name .shstrtab with its NUL


cdef inline uint64_t early_strings_size(Writer* writer, uint64_t size) noexcept nogil:
    """Return the size of .strtab in the mercury file; `size` is that in the final file.

    The second program adds names of constant banks at the end: those of .nv.constant0.K, and the
    final names of renamed banks. The bytes before these names are the mercury file's.
    """
    cdef const OutRow* row
    cdef uint64_t renamed_size = 0
    cdef size_t i
    for i in range(writer.placed.section_order_count):
        row = &writer.placed.outs[writer.placed.section_order[i]]
        if is_a(row.kind, IS_PARAMETERS):
            size = min(size, <uint64_t>row.symbol_name)
        elif is_renamed(row):
            renamed_size += (strlen(<const char*>writer.placed.strtab + row.symbol_name)
                             - bytes_shrunk(row) + 1)
    return size - renamed_size


cdef inline bint is_late(const OutRow* row) noexcept nogil:
    """Return whether the second program creates the section, so that the mercury file lacks it."""
    return row.twin >= 0 or is_a(row.kind, IS_PARAMETERS)


cdef inline uint64_t early_size(Writer* writer, OutNumber section, uint64_t shstrtab_size,
                                int64_t note, uint32_t late_compat) noexcept nogil:
    """Return the size of a section (OutRow) in the mercury file, 0 if it has no bytes there.

    `shstrtab_size` is the size of .shstrtab there. nvlink's .note.nv.tkinfo is longer than ours by
    `note` bytes, and the second program adds `late_compat` bytes to .nv.compat.
    """
    cdef const OutRow* row = &writer.placed.outs[section]
    cdef uint64_t size = writer.placed.places[section].size
    if is_nobits(row):
        return 0
    if row.kind == K_SHSTRTAB:
        return shstrtab_size
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
                                       Shdr* heads, uint64_t* start) noexcept nogil:
    """Set `heads` to the section headers whose bytes .nv.merc.nv.shared.reserved.0 repeats.

    `heads` has FIRST_HEADERS rows. Returns how many bytes of them the section has, maybe 0; `start`
    gets the offset of these bytes in the output. The section's other bytes are zero.

    The plain section, .nv.shared.reserved.0, has no bytes, so nvlink copies what follows its offset
    in the mercury file. That can reach the section header table, which comes after all sections
    (docs/format-notes.md). nvlink's own note (.note.nv.tkinfo) is longer than ours by `note` bytes,
    and the second program adds `late_compat` bytes to .nv.compat.
    """
    cdef const PlaceRow* place = &writer.placed.places[writer.only[K_MERC_SYSTEM_SHARED]]
    cdef Shdr* shstrtab = &heads[SHSTRTAB_INDEX]
    cdef Shdr* strtab = &heads[STRTAB_INDEX]
    cdef uint64_t end = sizeof(Ehdr)        # offset after the mercury file's sections so far
    cdef uint64_t plain = 0                 # offset of .nv.shared.reserved.0 there
    cdef const OutRow* row
    cdef OutNumber section
    cdef size_t i
    memset(heads, 0, FIRST_HEADERS * sizeof(Shdr))
    shstrtab.sh_name = 1
    shstrtab.sh_type = SHT_STRTAB
    shstrtab.sh_offset = sizeof(Ehdr)
    shstrtab.sh_addralign = 1
    # The mercury file's .shstrtab is the part of this one before the first name of a late section.
    shstrtab.sh_size = place.name
    for i in range(writer.placed.section_order_count):
        section = writer.placed.section_order[i]
        if is_late(&writer.placed.outs[section]) and writer.placed.places[section].name:
            shstrtab.sh_size = min(shstrtab.sh_size, <uint64_t>writer.placed.places[section].name)
    strtab.sh_name = shstrtab.sh_name + SHSTRTAB_NAME
    strtab.sh_type = SHT_STRTAB
    strtab.sh_offset = shstrtab.sh_offset + shstrtab.sh_size
    for i in range(writer.placed.section_order_count):
        section = writer.placed.section_order[i]
        row = &writer.placed.outs[section]
        if is_late(row):
            continue
        end = round_up(end, 16 if is_a(row.kind, IS_CODE) else row.align)
        if row.kind == K_SYSTEM_SHARED:
            plain = end
        end += early_size(writer, section, shstrtab.sh_size, note, late_compat)
    end = round_up(end, 8) - plain          # bytes from the plain section to the header table
    start[0] = place.offset + end
    if end >= place.size:
        return 0
    return min(<uint64_t>(FIRST_HEADERS * sizeof(Shdr)), place.size - end)


cdef inline uint32_t head_value(Writer* writer, const OutRow* row, uint8_t rule) noexcept nogil:
    """Return sh_link or sh_info of a section by a HEAD_ rule of its kind.

    `rule` is what KIND has for the field, in `link` or `info`. HEAD_CAPSULE, and HEAD_TARGET for a
    mercury section, give the index of a mercury section. 0 if the rule sets no value.
    """
    cdef bint mercury = KIND[row.kind].mercury
    cdef const OutRow* plain = &writer.placed.outs[row.twin] if mercury else row
    if rule == HEAD_STRTAB:
        return STRTAB_INDEX
    if rule == HEAD_SYMTAB:
        return SYMTAB_INDEX
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


cdef inline uint32_t mercury_index(Writer* writer, OutNumber plain) noexcept nogil:
    """Return the header index of the mercury twin of a plain OutRow; 0 without a twin."""
    cdef OutNumber twin = writer.placed.outs[plain].merc
    return writer.placed.section_index[twin] if twin >= 0 else 0


cdef inline void write_section_header(Writer* writer, OutNumber section, Shdr* out) noexcept nogil:
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
        # Bits 24 to 31 stay the input's: the function's own register count, without its callees.
        out.sh_info |= writer.objects.sections[row.source].info & 0xff000000U


cdef inline bint list_headers(Vec* windows, Writer* writer) noexcept nogil:
    """List windows of the section header table; False without memory."""
    return list_rows(windows, writer.placed.table_offset, sizeof(Shdr),
                     writer.placed.section_order_count + 1, HEADERS)


cdef inline void make_headers(Writer* writer, const Window* window, Shdr* to) noexcept nogil:
    """Write a window of section headers. Header 0 has the number of all if e_shnum is too small."""
    cdef OutNumber ahead
    cdef size_t i
    for i in range(window.first, window.last):
        if i + AHEAD < window.last:
            ahead = writer.placed.section_order[i + AHEAD - 1]
            prefetch(&writer.placed.outs[ahead])
            prefetch(&writer.placed.outs[ahead].marks)
            prefetch(&writer.placed.places[ahead])
        if i:
            write_section_header(writer, writer.placed.section_order[i - 1], &to[i - window.first])
            continue
        memset(to, 0, sizeof(Shdr))
        if writer.placed.section_order_count + 1 >= SHN_LORESERVE:
            to.sh_size = writer.placed.section_order_count + 1


cdef inline void start_header(Ehdr* header, Writer* writer, uint64_t segments) noexcept nogil:
    """Fill an ELF header, except for the fields that `write_header` in image.pyx sets.

    `segments` is the number of program headers.
    """
    cdef uint32_t cuinfo = index_of(writer, K_CUINFO)
    memset(header, 0, sizeof(Ehdr))
    put_text(header.e_ident, b"\x7fELF\x02\x01\x01")
    header.e_type = ET_EXEC if writer.objects.executable else ET_REL
    header.e_machine = EM_CUDA
    header.e_shoff = writer.placed.table_offset
    # Bits 24 to 31 of e_flags have the index of .note.nv.cuinfo: before sm_100 255 if it is larger,
    # from sm_100 on its low 8 bits.
    if not writer.objects.traits & TRAIT_MERCURY:
        cuinfo = min(cuinfo, <uint32_t>0xff)
    header.e_flags = cuinfo << 24
    header.e_ehsize = sizeof(Ehdr)
    header.e_shentsize = sizeof(Shdr)
    header.e_shstrndx = SHSTRTAB_INDEX
    if segments:
        header.e_phoff = (writer.placed.table_offset + (writer.placed.section_order_count + 1)
                          * sizeof(Shdr))
        header.e_phnum = <uint16_t>segments
    if segments or not writer.objects.traits & TRAIT_MERCURY:
        header.e_phentsize = sizeof(Phdr)
    if writer.placed.section_order_count + 1 < SHN_LORESERVE:
        header.e_shnum = <uint16_t>(writer.placed.section_order_count + 1)
