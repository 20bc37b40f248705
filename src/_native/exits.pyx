"""Rewriting the kernels of sm_100 and later as nvlink's finalizer leaves them.

ptxas compiles each function for any caller. Once nvlink sees a whole kernel, it takes out of its
fences what only unknown code would need, and puts the error barrier of debuggable code before
each EXIT. Both change the size of the text, so every offset into it follows: relative branches,
the capsule, attribute lists, jump tables, relocations, and the debug sections.
docs/format-notes/family-c-exits.md has the rules and the experiments behind them.

The work is done on one relocatable file before anything is merged. A changed section is written
behind the end of the file and its header's sh_offset and sh_size are changed; no other byte is.
Section and symbol indices stay, and so do the mercury sections other than the capsules, which
count in units of their own.

Cost: linear in the bytes of the sections read.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memchr, memcmp, memcpy, memset

from elf64 cimport (EM_CUDA, SHT_CUDA_CAPMERC, SHT_CUDA_GLOBAL, SHT_CUDA_INFO, SHT_CUDA_LOCAL,
                    SHT_CUDA_MERC_RELA, SHT_CUDA_RESERVED_SHARED, SHT_CUDA_SHARED, SHT_NOBITS,
                    SHT_NULL, SHT_RELA, SHT_SYMTAB, STO_ENTRY, STT_FUNC, STT_SECTION, Ehdr, Shdr,
                    Sym)
from exitcode cimport *
from exitlines cimport *
from exitplaces cimport *
from names cimport index_free, index_init

cdef enum:
    SHT_CUDA_CONSTANT_B2 = 0x70000066
    R_CUDA_64 = 2
    PLACEMENT = 128         # alignment of rewritten sections in the file

cdef tuple REASONS = (
    "",
    "",
    "section table is malformed",
    "capsule is cut off",
    "capsule record is unknown",
    "capsule bitmap is empty or runs past the capsule",
    "capsule and text differ in the number of instructions",
    "capsule does not end with the record of the last instruction",
    "attribute record is malformed",
    "register table is malformed",
    "FDE is malformed",
    "call frame instruction is not supported",
    "line unit is malformed or not DWARF 2 or 3",
    "line number opcode is not supported",
    "relocation fits no line program",
    "symbol index is out of range",
    "jump table has a relocation outside of it",
)


class MalformedKernel(ValueError):
    """A file breaks its format; see the stub."""

    def __init__(self, section, offset, reason):
        super().__init__(f"{section}+{offset:#x}: {reason}")
        self.section = section
        self.offset = offset
        self.reason = reason


# One file while its kernels are rewritten.
ctypedef struct File:
    const uint8_t* data
    uint64_t size
    View* views             # by section index
    size_t count
    size_t symtab
    const Sym* symbols
    uint64_t symbol_count
    int32_t* codes          # by symbol index: row of the kernel table, or -1
    int32_t* code_of        # by section index: likewise for .text sections
    Vec kernels             # Code
    Vec places              # Place


cdef void file_init(File* file, bytes image) noexcept:
    memset(file, 0, sizeof(File))
    file.data = <const uint8_t*>PyBytes_AS_STRING(image)
    file.size = PyBytes_GET_SIZE(image)
    vec_init(&file.kernels, sizeof(Code))
    vec_init(&file.places, sizeof(Place))


cdef void file_free(File* file) noexcept:
    cdef size_t i
    if file.views != NULL:
        for i in range(file.count):
            free(file.views[i].fresh)
    free(file.views)
    free(file.codes)
    free(file.code_of)
    vec_free(&file.kernels)
    vec_free(&file.places)


cdef bint has_no_bytes(uint32_t kind) noexcept nogil:
    return kind in (SHT_NULL, SHT_NOBITS, SHT_CUDA_GLOBAL, SHT_CUDA_LOCAL, SHT_CUDA_SHARED,
                    SHT_CUDA_RESERVED_SHARED)


cdef bint read_sections(File* file, Fault* fault) noexcept nogil:
    """Check the file as far as it is used here, and fill views and symbols."""
    cdef const Ehdr* header = <const Ehdr*>file.data
    cdef const Shdr* section
    cdef View* view
    cdef View* names
    cdef const uint8_t* nul
    cdef size_t i
    fail(fault, 0, 0, R_SECTION)
    if (file.size < sizeof(Ehdr) or memcmp(header.e_ident, b"\x7fELF\x02\x01", 6) != 0
            or header.e_machine != EM_CUDA or header.e_shentsize != sizeof(Shdr)
            or header.e_shoff > file.size
            or header.e_shnum > (file.size - header.e_shoff) // sizeof(Shdr)
            or header.e_shstrndx >= header.e_shnum):
        return False
    file.count = header.e_shnum
    file.views = <View*>calloc(file.count, sizeof(View))
    file.code_of = <int32_t*>malloc(file.count * sizeof(int32_t))
    if file.views == NULL or file.code_of == NULL:
        return fail(fault, 0, 0, R_MEMORY)
    memset(file.code_of, -1, file.count * sizeof(int32_t))
    section = <const Shdr*>(file.data + header.e_shoff)
    for i in range(file.count):
        view = &file.views[i]
        view.kind = section[i].sh_type
        view.link = section[i].sh_link
        view.info = section[i].sh_info
        view.data = file.data
        if not has_no_bytes(view.kind):
            if (section[i].sh_offset > file.size
                    or section[i].sh_size > file.size - section[i].sh_offset):
                return fail(fault, i, 0, R_SECTION)
            view.data += section[i].sh_offset
            view.size = section[i].sh_size
    names = &file.views[header.e_shstrndx]
    for i in range(file.count):
        view = &file.views[i]
        if section[i].sh_name >= names.size:
            return fail(fault, i, 0, R_SECTION)
        view.name = names.data + section[i].sh_name
        nul = <const uint8_t*>memchr(view.name, 0, names.size - section[i].sh_name)
        if nul == NULL:
            return fail(fault, i, 0, R_SECTION)
        view.name_size = <uint32_t>(nul - view.name)
        if view.kind == SHT_SYMTAB:
            file.symtab = i
            file.symbols = <const Sym*>view.data
            file.symbol_count = view.size // sizeof(Sym)
            if view.link >= file.count:
                return fail(fault, i, 0, R_SECTION)
    file.codes = <int32_t*>malloc((file.symbol_count + 1) * sizeof(int32_t))
    if file.codes == NULL:
        return fail(fault, 0, 0, R_MEMORY)
    memset(file.codes, -1, file.symbol_count * sizeof(int32_t))
    return True


cdef bint is_kernel(const Sym* symbol) noexcept nogil:
    return symbol.st_info & 0xf == STT_FUNC and symbol.st_other & STO_ENTRY and symbol.st_shndx


cdef bint rewrite_kernels(File* file, int mode, Fault* fault) noexcept nogil:
    """Rewrite text and capsule of each kernel that has both."""
    cdef int32_t* capsule_of = <int32_t*>calloc(file.count + 1, sizeof(int32_t))
    cdef const Sym* symbol
    cdef Code code
    cdef Code* row
    cdef Draft draft
    cdef uint64_t i
    cdef uint32_t text
    cdef bint done = True, changed
    if capsule_of == NULL:
        return fail(fault, 0, 0, R_MEMORY)
    vec_init(&draft.words, WORD)
    vec_init(&draft.sources, sizeof(uint64_t))
    vec_init(&draft.records, 1)
    for i in range(file.count):
        # A capsule begins with the section index of its text.
        if file.views[i].kind == SHT_CUDA_CAPMERC and file.views[i].size >= 2:
            text = get16(file.views[i].data)
            if text < file.count:
                capsule_of[text] = <int32_t>i
    for i in range(file.symbol_count):
        symbol = file.symbols + i
        if not is_kernel(symbol) or symbol.st_shndx >= file.count:
            continue
        memset(&code, 0, sizeof(Code))
        code.text = symbol.st_shndx
        code.capsule = capsule_of[code.text]
        if not code.capsule or file.code_of[code.text] >= 0:
            continue
        done = rewrite_code(&file.views[code.text], &file.views[code.capsule], mode, &code, &draft,
                            &file.places, &changed, fault)
        if done and changed:
            row = <Code*>vec_push(&file.kernels)
            if row == NULL:
                done = fail(fault, 0, 0, R_MEMORY)
            else:
                row[0] = code
                file.code_of[code.text] = <int32_t>(file.kernels.count - 1)
        if not done:
            break
    vec_free(&draft.words)
    vec_free(&draft.sources)
    vec_free(&draft.records)
    free(capsule_of)
    return done


cdef bint resize_symbols(File* file, Fault* fault) noexcept nogil:
    """Note which symbols stand for a changed kernel, and give the kernels their new sizes."""
    cdef Sym* symbols = <Sym*>editable(&file.views[file.symtab])
    cdef uint64_t i
    cdef int32_t row
    if symbols == NULL:
        return fail(fault, 0, 0, R_MEMORY)
    for i in range(file.symbol_count):
        if symbols[i].st_shndx >= file.count:
            continue
        row = file.code_of[symbols[i].st_shndx]
        if row < 0:
            continue
        if is_kernel(symbols + i):
            symbols[i].st_size = (<Code*>file.kernels.data)[row].fresh_size
            file.codes[i] = row
        elif symbols[i].st_info & 0xf == STT_SECTION:
            file.codes[i] = row
    return True


cdef bint move_places(File* file, Fault* fault) noexcept nogil:
    """Correct attribute lists and jump tables of the changed kernels."""
    cdef const Code* codes = <const Code*>file.kernels.data
    cdef const Place* places = <const Place*>file.places.data
    cdef View* view
    cdef View* table
    cdef size_t i, j
    cdef int32_t row
    for i in range(file.count):
        view = &file.views[i]
        row = file.code_of[view.info] if view.info < file.count else -1
        if view.kind == SHT_CUDA_INFO and row >= 0:
            if not move_info(view, i, codes + row, places, fault):
                return False
        elif view.kind == SHT_CUDA_MERC_RELA and view.info < file.count:
            # Its section is the mercury twin of the kernel's bank 2, whose own is the capsule.
            table = &file.views[view.info]
            if table.info >= file.count or file.views[table.info].kind != SHT_CUDA_CAPMERC:
                continue
            if file.views[table.info].size < 2:
                continue
            row = get16(file.views[table.info].data)
            row = file.code_of[row] if <size_t>row < file.count else -1
            if row < 0:
                continue
            for j in range(file.count):
                if (file.views[j].kind == SHT_CUDA_CONSTANT_B2
                        and file.views[j].info == codes[row].text):
                    if not move_table(&file.views[j], j, view, codes + row, places, fault):
                        return False
    return True


cdef bint is_named(const View* view, const char* name, uint32_t size) noexcept nogil:
    return view.name_size == size and memcmp(view.name, name, size) == 0


cdef bint move_relocations(File* file, Fault* fault) noexcept nogil:
    """Correct offsets in changed text and addends against changed kernels."""
    cdef const Code* codes = <const Code*>file.kernels.data
    cdef const Place* places = <const Place*>file.places.data
    cdef View* view
    cdef Rela* rows
    cdef uint64_t j
    cdef size_t i
    cdef int32_t home, target
    for i in range(file.count):
        view = &file.views[i]
        if view.kind != SHT_RELA or not view.size:
            continue
        rows = <Rela*>editable(view)
        if rows == NULL:
            return fail(fault, 0, 0, R_MEMORY)
        home = file.code_of[view.info] if view.info < file.count else -1
        for j in range(view.size // sizeof(Rela)):
            if rows[j].r_sym >= file.symbol_count:
                return fail(fault, i, j * sizeof(Rela), R_SYMBOL)
            target = file.codes[rows[j].r_sym]
            if home >= 0:
                rows[j].r_offset = moved(codes + home, places, rows[j].r_offset, True)
            if target >= 0 and rows[j].r_addend > 0:
                rows[j].r_addend = <int64_t>moved(codes + target, places,
                                                  <uint64_t>rows[j].r_addend, False)
    return True


cdef bint move_frames(File* file, size_t section, const View* rela, Fault* fault) noexcept nogil:
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


cdef bint move_line_references(File* file, size_t section, const Vec* units,
                               Fault* fault) noexcept nogil:
    """Correct addends against a rebuilt line section: they name the start of a unit."""
    cdef const UnitPlace* unit = <const UnitPlace*>units.data
    cdef const Sym* symbol
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
            symbol = file.symbols + rows[j].r_sym
            if symbol.st_info & 0xf != STT_SECTION or symbol.st_shndx != section:
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


cdef bint rebuild_lines(File* file, size_t section, View* rela, size_t rela_at,
                        Fault* fault) noexcept nogil:
    cdef View* view = &file.views[section]
    cdef Lines lines
    cdef Vec out, units
    cdef bint done
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
        view.fresh = out.data
        view.fresh_size = out.count
        done = move_line_references(file, section, &units, fault)
    else:
        vec_free(&out)
    vec_free(&units)
    return done


cdef bint move_debug(File* file, Fault* fault) noexcept nogil:
    """Correct frames, line programs and register ranges."""
    cdef View* view
    cdef View* rela
    cdef NameIndex names
    cdef NameSlot* slot
    cdef const Code* codes = <const Code*>file.kernels.data
    cdef size_t i, j
    cdef bint done = True
    for i in range(file.count):
        view = &file.views[i]
        if view.kind != SHT_RELA or view.info >= file.count or not view.size:
            continue
        if is_named(&file.views[view.info], b".debug_frame", 12):
            done = move_frames(file, view.info, view, fault)
        elif (is_named(&file.views[view.info], b".debug_line", 11)
                or is_named(&file.views[view.info], b".nv_debug_line_sass", 19)):
            done = rebuild_lines(file, view.info, view, i, fault)
        if not done:
            return False
    for i in range(file.count):
        if not is_named(&file.views[i], b".nv_debug_info_reg_sass", 23):
            continue
        if not index_init(&names, file.kernels.count):
            return fail(fault, 0, 0, R_MEMORY)
        for j in range(file.kernels.count):
            view = &file.views[codes[j].text]
            if view.name_size <= 6:         # ".text."
                continue
            slot = index_find(&names, view.name + 6, view.name_size - 6)
            if slot != NULL and slot.value < 0:
                slot.value = <int32_t>j
                names.count += 1
        done = move_registers(&file.views[i], i, &names, codes,
                              <const Place*>file.places.data, fault)
        index_free(&names)
        if not done:
            return False
    return True


cdef bint rewrite(File* file, int mode, Fault* fault) noexcept nogil:
    if not read_sections(file, fault) or not rewrite_kernels(file, mode, fault):
        return False
    if not file.kernels.count:
        return True
    return (resize_symbols(file, fault) and move_places(file, fault)
            and move_relocations(file, fault) and move_debug(file, fault))


cdef bytes write_image(const File* file):
    """The file with its changed sections behind the end."""
    cdef uint64_t size = file.size, at
    cdef size_t i
    cdef Shdr* section
    cdef View* view
    cdef uint8_t* out
    for i in range(file.count):
        view = &file.views[i]
        if view.fresh == NULL:
            continue
        if view.fresh_size == view.size and memcmp(view.fresh, view.data, view.size) == 0:
            free(view.fresh)
            view.fresh = NULL
        else:
            size = (size + PLACEMENT - 1) // PLACEMENT * PLACEMENT + view.fresh_size
    cdef bytes image = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>size)
    out = <uint8_t*>PyBytes_AS_STRING(image)
    memcpy(out, file.data, file.size)
    section = <Shdr*>(out + (<const Ehdr*>file.data).e_shoff)
    at = file.size
    for i in range(file.count):
        view = &file.views[i]
        if view.fresh != NULL:
            memset(out + at, 0, (PLACEMENT - at % PLACEMENT) % PLACEMENT)
            at = (at + PLACEMENT - 1) // PLACEMENT * PLACEMENT
            memcpy(out + at, view.fresh, view.fresh_size)
            section[i].sh_offset = at
            section[i].sh_size = view.fresh_size
            at += view.fresh_size
    return image


def rewrite_exits(bytes image not None, int mode):
    """Rewrite the kernels of a relocatable cubin; see the stub."""
    cdef File file
    cdef Fault fault
    cdef bint done
    if not M_FENCES <= mode <= M_LONG:
        raise ValueError(f"mode {mode} is not known")
    file_init(&file, image)
    fault.section = 0
    fault.offset = 0
    fault.reason = R_NONE
    try:
        with nogil:
            done = rewrite(&file, mode, &fault)
        if done:
            return write_image(&file) if file.kernels.count else image
        if fault.reason == R_MEMORY:
            raise MemoryError
        name = ""
        if file.views != NULL and file.views[fault.section].name != NULL:
            name = file.views[fault.section].name[:file.views[fault.section].name_size].decode(
                errors="replace")
        raise MalformedKernel(name, fault.offset, REASONS[fault.reason])
    finally:
        file_free(&file)
