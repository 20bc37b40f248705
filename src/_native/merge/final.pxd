# The second program, from sm_100 on: it makes the final file from the linked mercury file
# (docs/order.md).
#
# From sm_100 on nvlink first links the mercury halves of the inputs, and a second program makes the
# final file from the result. It appends to lists and string tables that are complete, and replaces
# names in place. In .shstrtab, `.nv.constant.user` becomes `.nv.constant3` and four NULs, so the
# offsets of all other names stay.
#
# 1. `survey_sections` and `rename_symbols` give the banks of constants their final names.
# 2. `create_symtab_shndx` is called if only the final file has too many sections for 16 bits.
# 3. `create_parameter_sections` creates .nv.constant0.K, and the symbols of these sections.
# 4. `create_mercury_twins` creates the mercury sections that do not exist yet.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy, memmove, memset, strlen

from base.nameindex cimport pool_allocate, strings_append, strings_intern_both
from base.texts cimport has_text, is_named, put_text
from base.vector cimport vec_append, vec_extend, vec_push
from elfnumbers cimport SHN_LORESERVE, SHT_RELA
from merge.newrows cimport (
    OPTIMIZER_PREFIX, SHNDX, SectionHead, create_twin, create_unnamed_section, head_of, new_symbol,
)
from merge.state cimport Merge, code_of, function_if_linked, out_row, section_entry
from rownumbers cimport EF_KERNEL, EF_LIVE, E_SYSTEM_SHARED, FILE_WHOLE_PROGRAM, LINK_RELOCATABLE
from sectionkinds cimport (
    IS_CODE, IS_ENTRIES, IS_KERNEL_SHARED, IS_VARIABLES, KIND, K_SYMTAB_SHNDX, KindFacts,
)
from tables.kinds cimport (
    has_twin, is_a, is_function_info, is_merc, is_plain, is_renamed, start_out_row_of_kind,
)
from tables.rows cimport (
    OF_EMPTY_STAYS, OF_LATE, OF_OWN_BYTES, PART_TAIL, SYSTEM_RESERVE, EntityNumber, FileRow,
    OutNumber, OutRow, OutSymbolNumber, OutSymbolRow, SectionNumber, SectionRef, SectionRow,
)


cdef inline void make_final_file(Merge* merge) noexcept nogil:
    """Make the final file from the mercury file, whose sections, symbols and names are complete."""
    cdef size_t final_count = survey_sections(merge)
    if merge.failed:
        return
    rename_symbols(merge)
    if not merge.needs_symtab_shndx and final_count >= SHN_LORESERVE:
        create_symtab_shndx(merge, True)
    create_parameter_sections(merge)
    create_mercury_twins(merge)


cdef inline size_t survey_sections(Merge* merge) noexcept nogil:
    """Rename sections in .shstrtab in place, and find those that the next steps work on.

    It fills `renamed`, `code_sections` and `twinned` of MergeWork. One walk does all, since the
    rows of a large link are more than a cache holds. Returns a count of sections: from
    SHN_LORESERVE on, the final file needs .symtab_shndx. It includes sections that have no rows
    yet, which are .nv.constant0.K and most twins.
    """
    cdef size_t count = 4               # sections without a row, such as the null section
    cdef OutNumber out
    cdef const OutRow* row
    cdef uint8_t* renamed = <uint8_t*>vec_extend(&merge.work.renamed, merge.columns.outs.count)
    if renamed == NULL:
        merge.failed = True
        return 0
    for out in range(<int32_t>merge.columns.outs.count):
        row = out_row(merge, out)
        count += count_final_sections(merge, row)
        renamed[out] = needs_final_name(merge, row)
        if renamed[out]:
            rename_in_place(merge.columns.shstr.text.data + row.name)
        if is_a(row.kind, IS_CODE):
            merge.failed |= not vec_append(&merge.work.code_sections, &out, 1)
        if needs_twin(merge, row):
            merge.failed |= not vec_append(&merge.work.twinned, &out, 1)
    return count


cdef inline bint needs_final_name(Merge* merge, const OutRow* row) noexcept nogil:
    """Return whether a section, or the section that it relocates, is renamed."""
    cdef const OutRow* target
    if row.target >= 0 and row.type == SHT_RELA:
        target = out_row(merge, row.target)
        if (is_a(target.kind, IS_VARIABLES) and row.head < 0
                and not row.marks & OF_EMPTY_STAYS):
            return False            # the output does not have the section: its name stays
        row = target
    return is_renamed(row)


cdef enum:
    RELA_PREFIX = 5         # bytes of ".rela"
    BANK_PREFIX = 14        # bytes of ".nv.constant2."


cdef inline void put_name(uint8_t* text, size_t size, const char* name) noexcept nogil:
    """Write a name over a longer one of `size` bytes; zeros fill the rest."""
    memcpy(text, name, strlen(name))
    memset(text + strlen(name), 0, size - strlen(name))


cdef inline void rename_in_place(uint8_t* text) noexcept nogil:
    """Write the final name of a constant bank, or of its relocations, over the first name.

    Zeros fill the rest. `.rela.nv.constant.optimizer.f` becomes `.rela.nv.constant2.f`.
    """
    cdef size_t size = strlen(<const char*>text)
    cdef size_t function_size           # bytes of the function's name at the end
    cdef size_t prefix = 0
    if size > RELA_PREFIX and has_text(text, b".rela"):
        prefix = RELA_PREFIX
    text += prefix
    size -= prefix
    if is_named(text, size, b".nv.constant.user"):
        put_name(text, size, b".nv.constant3")
    elif is_named(text, size, b".nv.constant.pic"):
        put_name(text, size, b".nv.constant4")
    else:
        # A string that two sections share is renamed for each of them, as in nvlink. The second
        # time, its first 23 bytes are no longer `.nv.constant.optimizer.`, but the 14 bytes of
        # `.nv.constant2.` and nine of the function's name, which are lost.
        function_size = size - OPTIMIZER_PREFIX if size > OPTIMIZER_PREFIX else 0
        put_text(text, b".nv.constant2.")
        text += BANK_PREFIX
        memmove(text, text + OPTIMIZER_PREFIX - BANK_PREFIX, function_size)
        memset(text + function_size, 0, size - BANK_PREFIX - function_size)


cdef inline void rename_symbols(Merge* merge) noexcept nogil:
    """Give the section symbols of renamed sections their final names, as new strings in .strtab."""
    cdef size_t i
    cdef OutSymbolRow* symbol
    cdef uint8_t* text
    cdef uint32_t size
    cdef int64_t name
    for i in range(merge.columns.out_symbols.count):
        symbol = <OutSymbolRow*>merge.columns.out_symbols.data + i
        if symbol.section < 0 or not merge.work.renamed.data[symbol.section]:
            continue
        size = <uint32_t>strlen(<const char*>merge.columns.str.text.data + symbol.name)
        text = pool_allocate(&merge.work.texts, size + 1)
        if text == NULL:
            merge.failed = True
            return
        memcpy(text, merge.columns.str.text.data + symbol.name, size + 1)
        rename_in_place(text)
        name = strings_append(&merge.columns.str, text, <uint32_t>strlen(<const char*>text))
        merge.failed |= name < 0
        symbol.name = <uint32_t>name


cdef inline void create_parameter_sections(Merge* merge) noexcept nogil:
    """Create .nv.constant0.K of kernels, and their section symbols after the global symbols.

    Live kernels whose linked copy has such a section get one. The order is that of the kernels'
    code, which is not that of their first mentions.
    """
    cdef const OutNumber* code = <const OutNumber*>merge.work.code_sections.data
    cdef size_t i
    cdef OutSymbolNumber symbol
    cdef OutNumber out
    cdef EntityNumber kernel
    cdef SectionNumber source
    cdef int64_t name, symbol_name
    cdef SectionHead head
    cdef const SectionRow* source_row
    for i in range(merge.work.code_sections.count):
        kernel = out_row(merge, code[i]).entity
        source = merge.work.parameters_of[kernel] if kernel >= 0 else -1
        if source < 0:
            continue
        source_row = &merge.objects.sections[source]
        head = head_of(merge, source_row)
        out = create_unnamed_section(merge, kernel, &head)
        symbol = new_symbol(merge, -1, out, PART_TAIL)
        if (out < 0 or symbol < 0
                or not strings_intern_both(&merge.columns.shstr, &merge.columns.str,
                                           merge.objects.arena + source_row.name,
                                           source_row.name_size, &name, &symbol_name)):
            merge.failed = True
            break
        out_row(merge, out).size = source_row.size
        out_row(merge, out).name = <uint32_t>name
        out_row(merge, out).symbol_name = <uint32_t>symbol_name
        (<OutSymbolRow*>merge.columns.out_symbols.data)[symbol].name = <uint32_t>symbol_name
        merge.columns.out_of[source] = out


cdef inline void create_symtab_shndx(Merge* merge, bint late) noexcept nogil:
    """Create .symtab_shndx, for section numbers that do not fit 16 bits.

    Its number and its name were reserved before the first input. With `late`, only the final file
    needs it, and its name is written again.
    """
    cdef OutRow* row = <OutRow*>vec_push(&merge.columns.outs)
    cdef int64_t name
    if row == NULL:
        merge.failed = True
        return
    start_out_row_of_kind(row, K_SYMTAB_SHNDX)
    row.created = <uint32_t>merge.symtab_shndx_position + 1
    if not late:
        section_entry(merge, <OutNumber>(merge.columns.outs.count - 1)).out = <OutNumber>(
            merge.columns.outs.count - 1)
        return
    name = strings_append(&merge.columns.shstr, <const uint8_t*>SHNDX, <uint32_t>strlen(SHNDX))
    merge.failed |= name < 0
    row.marks = OF_LATE
    row.name = <uint32_t>name


cdef inline size_t count_final_sections(Merge* merge, const OutRow* row) noexcept nogil:
    """Return how many sections of the final file an OutRow stands for: itself, and some twins.

    Code also stands for its capsule and, for a kernel, for .nv.constant0.K; .nv.info.F for its
    twin. .nv.shared.K and a relocation section without entries stand for none.
    """
    if is_a(row.kind, IS_CODE):
        return 2 + (merge.merged.entities[row.entity].flags & EF_KERNEL != 0)
    if is_function_info(row.kind):
        return 2
    if is_a(row.kind, IS_ENTRIES):
        return row.count != 0
    return not is_a(row.kind, IS_KERNEL_SHARED)


cdef inline bint needs_twin(Merge* merge, const OutRow* row) noexcept nogil:
    """Return whether a section gets a mercury twin that no input has brought."""
    cdef const KindFacts* twin = &KIND[KIND[row.kind].twin]
    return (twin.mercury and not twin.brought and not twin.trait & ~merge.objects.traits
            and has_twin(row.kind, row.bank))


cdef inline void create_mercury_twin(Merge* merge, OutNumber plain) noexcept nogil:
    """Create the mercury twin of a plain section.

    The twin of the system's shared memory has the size of the inputs' pieces, without
    SYSTEM_RESERVE.
    """
    cdef OutNumber out = create_twin(merge, plain)
    if out < 0:
        return
    out_row(merge, out).marks = out_row(merge, plain).marks & OF_LATE
    if KIND[out_row(merge, plain).kind].entity_kind == E_SYSTEM_SHARED:
        out_row(merge, out).size = out_row(merge, plain).size
        if not merge.objects.mode & LINK_RELOCATABLE:
            out_row(merge, out).size -= SYSTEM_RESERVE


cdef inline void create_mercury_twins(Merge* merge) noexcept nogil:
    """Create the mercury twins of plain sections, and assign the inputs' capsules to them.

    Twins that come from inputs, such as those of debug sections and relocations, exist already.
    """
    cdef const OutNumber* twinned = <const OutNumber*>merge.work.twinned.data
    cdef size_t plain_count = merge.columns.outs.count, i
    cdef EntityNumber function
    cdef OutNumber out
    cdef SectionNumber capsule
    for i in range(merge.work.twinned.count):
        create_mercury_twin(merge, twinned[i])
    for i in range(merge.work.renamed.count, plain_count):      # created after the survey
        if needs_twin(merge, out_row(merge, <OutNumber>i)):
            create_mercury_twin(merge, <OutNumber>i)
    if merge.failed:
        return
    for i in range(merge.work.capsules.count):
        capsule = (<const SectionNumber*>merge.work.capsules.data)[i]
        function = function_if_linked(merge, capsule)
        out = code_of(merge, function) if function >= 0 else -1
        if out >= 0 and merge.merged.entities[function].flags & EF_LIVE:
            out = out_row(merge, out).merc
            merge.columns.out_of[capsule] = out
            out_row(merge, out).size = merge.objects.sections[capsule].size
            out_row(merge, out).source = capsule
    for i in range(merge.objects.file_count):
        if merge.objects.files[i].flags & FILE_WHOLE_PROGRAM:
            split_mercury_variables(merge, &merge.objects.files[i])


cdef inline void split_mercury_variables(Merge* merge, const FileRow* file) noexcept nogil:
    """Give mercury variables bytes of their own where those of a file differ from the plain ones.

    That is so in whole programs (-ewp): their plain tables of functions have offsets inside of a
    kernel, where the mercury tables have relocations.
    """
    cdef SectionRef i
    cdef SectionNumber plain
    cdef OutNumber out
    for i in range(file.first_section, file.first_section + file.section_count):
        if not is_merc(merge.objects.sections[i].kind, IS_VARIABLES):
            continue
        plain = find_plain_variables(merge, file, &merge.objects.sections[i])
        if plain < 0 or merge.objects.sections[plain].offset == merge.objects.sections[i].offset:
            continue
        out = merge.columns.out_of[plain]
        if out >= 0 and out_row(merge, out).merc >= 0:
            redirect_mercury_variables(merge, out)


cdef inline SectionNumber find_plain_variables(Merge* merge, const FileRow* file,
                                               const SectionRow* mercury) noexcept nogil:
    """Return the plain section of `file` for its mercury section of variables, or -1."""
    cdef const SectionRow* plain
    cdef SectionRef i
    for i in range(file.first_section, file.first_section + file.section_count):
        plain = &merge.objects.sections[i]
        if (is_plain(plain.kind, IS_VARIABLES) and plain.bank == mercury.bank
                and KIND[plain.kind].twin == mercury.kind):
            return <SectionNumber>i
    return -1


cdef inline void redirect_mercury_variables(Merge* merge, OutNumber plain) noexcept nogil:
    """Give inputs' mercury variables the twin of `plain` as their output section.

    These are the mercury forms of the pieces of `plain`.
    """
    cdef OutRow* twin = out_row(merge, out_row(merge, plain).merc)
    cdef const SectionRow* section
    cdef size_t i
    cdef SectionNumber source
    if twin.marks & OF_OWN_BYTES:
        return
    twin.marks |= OF_OWN_BYTES
    twin.size = out_row(merge, plain).size
    for i in range(merge.objects.section_count):
        section = &merge.objects.sections[i]
        if not is_merc(section.kind, IS_VARIABLES):
            continue
        source = find_plain_variables(merge, &merge.objects.files[section.file], section)
        if source >= 0 and merge.columns.out_of[source] == plain:
            merge.columns.out_of[i] = out_row(merge, plain).merc
            merge.columns.base[i] = merge.columns.base[source]
