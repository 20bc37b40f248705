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

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy, memset

from elf64 cimport (SHT_CUDA_CAPMERC, SHT_CUDA_INFO, SHT_CUDA_MERC_RELA, SHT_PROGBITS, SHT_RELA,
                    STO_ENTRY, STT_FUNC, STT_SECTION, Ehdr, Shdr, Sym)
from exitcapsule cimport Draft
from exitcode cimport *
from exitdebug cimport TEXT_PREFIX, move_debug
from exitearly cimport convert_code
from exitfile cimport *
from exitlines cimport Rela
from exitplaces cimport *
from exitrows cimport *
from exitwords cimport M_EARLY, M_FENCES, WORD
from vec cimport *

cdef enum:
    SHT_CUDA_CONSTANT_B2 = 0x70000066
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


cdef bint is_function(const Sym* symbol) noexcept nogil:
    return symbol.st_info & 0xf == STT_FUNC and symbol.st_shndx != 0


cdef bint is_kernel(const Sym* symbol) noexcept nogil:
    return is_function(symbol) and symbol.st_other & STO_ENTRY


cdef bint rewrite_functions(File* file, int mode, Fault* fault) noexcept nogil:
    """Rewrite text and capsule of each kernel, or function, that has both."""
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
    vec_init(&draft.sizes, 1)
    for i in range(file.count):
        # A capsule begins with the section index of its text.
        if file.views[i].kind == SHT_CUDA_CAPMERC and file.views[i].size >= 2:
            text = load16(file.views[i].data)
            if text < file.count:
                capsule_of[text] = <int32_t>i
    for i in range(file.symbol_count):
        symbol = file.symbols + i
        if symbol.st_shndx >= file.count or not (
                is_function(symbol) if file.early else is_kernel(symbol)):
            continue
        memset(&code, 0, sizeof(Code))
        code.text = symbol.st_shndx
        code.capsule = capsule_of[code.text]
        if (not code.capsule or file.code_of[code.text] >= 0
                or file.views[code.text].kind != SHT_PROGBITS
                or file.views[code.text].name_size <= TEXT_PREFIX
                or memcmp(file.views[code.text].name, b".text.", TEXT_PREFIX) != 0):
            continue
        if file.early:
            done = convert_code(&file.views[code.text], &file.views[code.capsule], &code, &draft,
                                &file.places, &changed, fault)
        else:
            done = rewrite_code(&file.views[code.text], &file.views[code.capsule], mode, &code,
                                &draft, &file.places, &changed, fault)
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
    vec_free(&draft.sizes)
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
        if is_function(symbols + i):
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
            if not move_info(view, i, codes + row, places, file.early, fault):
                return False
        elif view.kind == SHT_CUDA_MERC_RELA and view.info < file.count:
            # Its section is the mercury twin of the kernel's bank 2, whose own is the capsule.
            table = &file.views[view.info]
            if table.info >= file.count or file.views[table.info].kind != SHT_CUDA_CAPMERC:
                continue
            if file.views[table.info].size < 2:
                continue
            row = load16(file.views[table.info].data)
            row = file.code_of[row] if <size_t>row < file.count else -1
            if row < 0:
                continue
            for j in range(file.count):
                if (file.views[j].kind == SHT_CUDA_CONSTANT_B2
                        and file.views[j].info == codes[row].text):
                    if not move_table(&file.views[j], j, view, codes + row, places, fault):
                        return False
    return True


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


cdef bint rewrite(File* file, int mode, Fault* fault) noexcept nogil:
    if not read_sections(file, fault) or not rewrite_functions(file, mode, fault):
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
    if not M_FENCES <= mode <= M_EARLY:
        raise ValueError(f"mode {mode} is not known")
    file_init(&file, image)
    file.early = mode == M_EARLY
    fault.section = 0
    fault.offset = 0
    fault.reason = R_NONE
    try:
        with nogil:
            done = rewrite(&file, mode, &fault)
        if done:
            return write_image(&file) if file.kernels.count or file.early else image
        if fault.reason == R_MEMORY:
            raise MemoryError
        name = ""
        if file.views != NULL and file.views[fault.section].name != NULL:
            name = file.views[fault.section].name[:file.views[fault.section].name_size].decode(
                errors="replace")
        raise MalformedKernel(name, fault.offset, REASONS[fault.reason])
    finally:
        file_free(&file)
