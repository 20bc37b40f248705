"""Rewriting the kernels of sm_100 and later as nvlink's finalizer leaves them.

ptxas compiles each function for any caller. Once nvlink sees a whole kernel, it removes the parts
of fences that only unknown code needs, and puts the error barrier of debuggable code before each
EXIT. Both change the size of the text, so every offset into it is corrected. For example, a kernel
that contains only a fence and an EXIT, in a link without the error barrier:

    input                                output
    0x00  four dummy loads
    0x40  MEMBAR, the guard
    0x50  MEMBAR                         0x00  MEMBAR
    0x60  EXIT                           0x10  EXIT

In the capsule (the mercury form of the code, .nv.capmerc.text.F), the record of the fence then
stands for one instruction instead of six.
docs/format-notes/family-c-exits.md has the rules and the experiments.

The work is done file by file on the rows of the reader, before anything is merged:

1. `rewrite_functions` rewrites text and capsule, slot by slot (exits/code.pxd), and records where
   each instruction goes.
2. `resize_symbols` sets the new sizes of functions. `move_places` corrects attribute lists and jump
   tables, `move_relocations` offsets and addends, and `move_debug` the debug sections.
3. `put_contents` writes changed contents after the end of the arena, and sets the offset and the
   size in the rows of their sections.

All other bytes stay. Mercury sections other than capsules stay, too, since their offsets do not
count bytes of .text. Code of one chip that is linked for another may need additional waits, which
move no instruction (`guard_functions`). Code of another release is first converted
(exits/early.pxd, exits/update.pxd).

Cost: linear in the bytes of the sections that are read and, if something changed, of the arena. To
find a changed kernel's jump table, all sections of its file are searched.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from base.elf64 cimport WORD, Rela, round_up
from base.hugepages cimport prefer_large_pages
from base.memory cimport check_memory
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_vector, scratch_zeros
from base.vector cimport vec_extend, vec_push
from elfnumbers cimport (
    SHT_CUDA_CAPMERC, SHT_CUDA_CONSTANT_B0, SHT_CUDA_INFO, SHT_CUDA_MERC_RELA, SHT_RELA, STO_ENTRY,
    STT_FUNC, STT_SECTION,
)
from exits.code cimport Rewriting, rewrite_code
from exits.debug cimport move_debug
from exits.early cimport convert_code
from exits.file cimport NewContents, RewrittenFile, code_index_of, open_views, section_index_of
from exits.guard cimport Guarded, guard_code, needs_guard
from exits.places cimport move_info, move_table
from exits.rows cimport (
    R_BITMAP, R_CUT_OFF, R_FRAME, R_FRAME_OP, R_INFO, R_INSTRUCTION_COUNT, R_LAST_SLOT, R_LINE_OP,
    R_LINE_RELOCATION, R_LINE_UNIT, R_MEMORY, R_RECORD, R_REGISTERS, R_TABLE, R_WHOLE, Code,
    CodeNumber, InstructionMap, RewriteFault, View, make_writable, map_offset, set_fault,
)
from exits.trap cimport clear_trap_waits, is_only_trap
from exits.update cimport update_code
from exits.words cimport OP_EXIT, UPDATE_ANY, opcode
from kernelmodes cimport (
    MODE_BARRIERS, MODE_EARLY_CAPSULES, MODE_EARLY_CODE, MODE_GUARDED, MODE_LASTING_BARRIERS,
    MODE_NO_BARRIERS,
)
from pylink._native.results cimport ObjectTables
from pylink._native.tables cimport Table
from tables.rows cimport (
    FileRow, FileSectionCounter, FileSectionNumber, FileSectionRef, FileSymbolRef, SectionNumber,
    SectionRow, SymbolNumber, SymbolRow, function_symbol,
)
from tables.views cimport ObjectsView
from traits cimport TRAIT_EARLY_FILES

cdef enum:
    SHT_CUDA_CONSTANT_B2 = SHT_CUDA_CONSTANT_B0 + 2
    CONTENTS_ALIGNMENT = 16     # bytes: rewritten contents begin at multiples of it in the arena


cdef inline bint is_defined_function(const SymbolRow* symbol) noexcept nogil:
    """Return whether the symbol is a function that its file defines."""
    return symbol.info & 0xf == STT_FUNC and symbol.section >= 0


cdef inline bint has_exit(const View* text) noexcept nogil:
    """Return whether any instruction of the text is an EXIT."""
    cdef uint64_t offset
    for offset in range(text.size // WORD):
        if opcode(text.data + offset * WORD) == OP_EXIT:
            return True
    return False


cdef inline bint drop_trap_waits(View* text, RewriteFault* fault) noexcept nogil:
    """Remove the waits of a kernel if it only traps (exits/trap.pxd); False with a fault."""
    if not is_only_trap(text.data, text.size):
        return True
    if make_writable(text) == NULL:
        return set_fault(fault, 0, 0, R_MEMORY)
    clear_trap_waits(text.rewritten)
    return True


cdef bint rewrite_function(RewrittenFile* file, Rewriting* rewriting, const SymbolRow* symbol,
                           FileSectionNumber capsule, int mode) noexcept nogil:
    """Rewrite one function if necessary; `file.kernels` gets a row if its code is written anew.

    A capsule or the waits of a trap can also change without a row. `symbol` is the function's,
    `capsule` the index of its capsule in the file, `mode` a MODE_ number or UPDATE_ bits. False
    with a fault.
    """
    cdef bint is_kernel = symbol.other & STO_ENTRY != 0, done
    cdef FileSectionCounter text = <FileSectionCounter>section_index_of(file, symbol)
    cdef Code* row
    rewriting.text = &file.views[text]
    if not (file.early or file.update or is_kernel
            or (mode != MODE_NO_BARRIERS and has_exit(rewriting.text))):
        return True
    rewriting.capsule = &file.views[capsule]
    memset(&rewriting.code, 0, sizeof(Code))
    rewriting.code.text = <FileSectionRef>text
    rewriting.code.capsule = <FileSectionRef>capsule
    rewriting.mode = mode
    rewriting.changed = rewriting.waits = False
    if file.update:
        done = update_code(rewriting)
    elif file.early:
        done = convert_code(rewriting)
    else:
        rewriting.mode = mode if is_kernel else MODE_LASTING_BARRIERS
        done = rewrite_code(rewriting)
    if (done and is_kernel and file.drops_trap_waits
            and (mode == MODE_NO_BARRIERS or mode == MODE_BARRIERS)):
        done = drop_trap_waits(rewriting.text, rewriting.fault)
    if done and rewriting.changed:
        row = <Code*>vec_push(&file.kernels)
        if row == NULL:
            return set_fault(rewriting.fault, 0, 0, R_MEMORY)
        row[0] = rewriting.code
        file.code_of[text] = <CodeNumber>(file.kernels.count - 1)
    return done


cdef bint rewrite_functions(RewrittenFile* file, int mode, RewriteFault* fault) noexcept nogil:
    """Rewrite text and capsule of all functions of a file that need it; False with a fault.

    The callers of a device function are not known, so of its code only EXITs are rewritten. Modes
    that convert code of another release rewrite all of it.
    """
    # By section of the file: for a .text the index of its capsule, 0 without one.
    cdef FileSectionNumber* capsule_of = <FileSectionNumber*>scratch_zeros(
        &file.scratch, file.count, sizeof(FileSectionNumber))
    cdef Rewriting rewriting
    cdef Scratch scratch
    cdef size_t i
    cdef FileSectionCounter text
    cdef bint done
    memset(&rewriting, 0, sizeof(Rewriting))
    rewriting.places = &file.places
    rewriting.fault = fault
    scratch_init(&scratch)
    scratch_vector(&scratch, &rewriting.buffer.words, WORD)
    scratch_vector(&scratch, &rewriting.buffer.sources, sizeof(uint64_t))
    scratch_vector(&scratch, &rewriting.buffer.records, 1)
    scratch_vector(&scratch, &rewriting.buffer.sizes, 1)
    done = not (scratch.failed or file.scratch.failed)
    for i in range(file.count if done else 0):
        if file.views[i].kind == SHT_CUDA_CAPMERC:
            capsule_of[code_index_of(file, i)] = <FileSectionNumber>i
    for i in range(file.symbol_count):
        if not done:
            break
        if not is_defined_function(&file.symbols[i]):
            continue
        text = <FileSectionCounter>section_index_of(file, &file.symbols[i])
        if file.code_of[text] < 0:
            done = rewrite_function(file, &rewriting, &file.symbols[i], capsule_of[text], mode)
    scratch_free(&scratch)
    return done


cdef bint resize_symbols(RewrittenFile* file, RewriteFault* fault) noexcept nogil:
    """Fill `file.codes` for symbols of changed kernels, and set their new sizes.

    A kernel of a whole program (-ewp) that has functions inside of it cannot change: the addresses
    that these return to are in its instructions, and the file does not say where. False with a
    fault.
    """
    cdef const Code* code
    cdef SymbolRow* symbol
    cdef size_t i
    cdef CodeNumber row
    for i in range(file.symbol_count):
        symbol = &file.symbols[i]
        row = file.code_of[section_index_of(file, symbol)] if symbol.section >= 0 else -1
        if row < 0:
            continue
        code = <const Code*>file.kernels.data + row
        if is_defined_function(symbol):
            if function_symbol(&file.sections[code.text]) != file.first_symbol + <SymbolNumber>i:
                return set_fault(fault, code.text, symbol.value, R_WHOLE)
            symbol.size = code.rewritten_size
            file.codes[i] = row
        elif symbol.info & 0xf == STT_SECTION:
            file.codes[i] = row
    return True


cdef bint move_places(RewrittenFile* file, RewriteFault* fault) noexcept nogil:
    """Correct code offsets in attribute lists and jump tables of changed kernels.

    False with a fault.
    """
    cdef const Code* codes = <const Code*>file.kernels.data
    cdef const InstructionMap* places = <const InstructionMap*>file.places.data
    cdef View* view
    cdef View* table
    cdef size_t i, j
    cdef CodeNumber row
    for i in range(file.count):
        view = &file.views[i]
        row = file.code_of[view.info] if view.info < file.count else -1
        if view.kind == SHT_CUDA_INFO and row >= 0:
            if not move_info(view, i, codes + row, places, file.early, fault):
                return False
        elif view.kind == SHT_CUDA_MERC_RELA and view.info < file.count:
            # The relocated section may be the mercury twin of a kernel's bank 2. Then its sh_info
            # is the capsule.
            table = &file.views[view.info]
            if table.info >= file.count or file.views[table.info].kind != SHT_CUDA_CAPMERC:
                continue
            row = file.code_of[code_index_of(file, table.info)]
            if row < 0:
                continue
            for j in range(file.count):
                if (file.views[j].kind == SHT_CUDA_CONSTANT_B2
                        and file.views[j].info == codes[row].text):
                    if not move_table(&file.views[j], j, view, codes + row, places, fault):
                        return False
    return True


cdef bint move_relocations(RewrittenFile* file, RewriteFault* fault) noexcept nogil:
    """Correct relocations: offsets in changed text, addends against symbols of changed kernels.

    False with a fault.
    """
    cdef const Code* codes = <const Code*>file.kernels.data
    cdef const InstructionMap* places = <const InstructionMap*>file.places.data
    cdef View* view
    cdef Rela* rows
    cdef uint64_t j
    cdef size_t i
    cdef CodeNumber home, target
    for i in range(file.count):
        view = &file.views[i]
        if view.kind != SHT_RELA or not view.size:
            continue
        rows = <Rela*>make_writable(view)
        if rows == NULL:
            return set_fault(fault, 0, 0, R_MEMORY)
        home = file.code_of[view.info] if view.info < file.count else -1
        for j in range(view.size // sizeof(Rela)):
            target = file.codes[<FileSymbolRef>rows[j].r_sym]
            if home >= 0:
                rows[j].r_offset = map_offset(codes + home, places, rows[j].r_offset, True)
            if target >= 0 and rows[j].r_addend > 0:
                rows[j].r_addend = <int64_t>map_offset(codes + target, places,
                                                       <uint64_t>rows[j].r_addend, False)
    return True


cdef bint guard_functions(RewrittenFile* file, Guarded* guarded,
                          RewriteFault* fault) noexcept nogil:
    """Add waits to the functions of a file that need some (exits/guard.pxd); False with a fault.

    Without the waits, results are ready in time only on the chip that the code was compiled for.
    `guarded` counts the changed instructions.
    """
    cdef View* text
    cdef size_t i
    for i in range(file.count):
        if file.views[i].kind != SHT_CUDA_CAPMERC:
            continue
        text = &file.views[code_index_of(file, i)]
        if not needs_guard(text):
            continue
        if make_writable(text) == NULL:
            return set_fault(fault, 0, 0, R_MEMORY)
        guard_code(text.rewritten, text.size, guarded)
    return True


cdef bint rewrite(RewrittenFile* file, int mode, Guarded* guarded,
                  RewriteFault* fault) noexcept nogil:
    """Rewrite one file as `mode`, a MODE_ number or UPDATE_ bits, says; False with a fault.

    `guarded` counts the instructions that MODE_GUARDED changes.
    """
    if mode == MODE_GUARDED:
        return guard_functions(file, guarded, fault)
    if not rewrite_functions(file, mode, fault):
        return False
    if not file.kernels.count:
        return True
    return (resize_symbols(file, fault) and move_places(file, fault)
            and move_relocations(file, fault) and move_debug(file, fault))


cdef bint put_contents(RewrittenFile* file, NewContents* fresh) noexcept nogil:
    """Append changed contents to `fresh`, and point their sections to them; False without memory.

    `data` of a view that an earlier step changed points into `fresh.data`, which may move when it
    grows. So all contents are compared before that, and no `data` is read afterwards.
    """
    cdef size_t i, offset, size = 0
    cdef View* view
    cdef uint8_t* place
    for i in range(file.count):
        view = &file.views[i]
        if view.rewritten == NULL:
            continue
        if view.rewritten_size == view.size and memcmp(view.rewritten, view.data, view.size) == 0:
            view.rewritten = NULL
            continue
        size += round_up(view.rewritten_size, CONTENTS_ALIGNMENT)
    if size == 0:
        return True
    offset = fresh.data.count
    place = <uint8_t*>vec_extend(&fresh.data, size)
    if place == NULL:
        return False
    for i in range(file.count):
        view = &file.views[i]
        if view.rewritten == NULL:
            continue
        size = round_up(view.rewritten_size, CONTENTS_ALIGNMENT)
        memcpy(place, view.rewritten, view.rewritten_size)
        memset(place + view.rewritten_size, 0, size - view.rewritten_size)
        file.sections[i].offset = fresh.base + offset
        file.sections[i].size = view.rewritten_size
        place += size
        offset += size
    return True


cdef bytes copy_arena(const ObjectsView* objects, const NewContents* fresh):
    """Return a copy of the arena, and after it the changed contents, `fresh`.

    An arena that several links share may consist mostly of files of other links. Then only this
    link's files are copied, and the bytes between them stay uninitialized.
    """
    cdef size_t own_size = 0, i
    cdef bytes result = PyBytes_FromStringAndSize(NULL, fresh.base + fresh.data.count)
    cdef char* to = PyBytes_AS_STRING(result)
    for i in range(objects.file_count):
        own_size += objects.files[i].size
    if own_size < objects.arena_size // 2:
        for i in range(objects.file_count):
            memcpy(to + objects.files[i].offset, objects.arena + objects.files[i].offset,
                   objects.files[i].size)
    else:
        prefer_large_pages(<uint8_t*>to, fresh.base + fresh.data.count)
        memcpy(to, objects.arena, objects.arena_size)
        memset(to + objects.arena_size, 0, fresh.base - objects.arena_size)
    memcpy(to + fresh.base, fresh.data.data, fresh.data.count)
    return result


cdef void start_file(RewrittenFile* file, Table sections, Table symbols, const FileRow* row,
                     int mode) noexcept:
    """Set up a file for a step in `mode`; `open_views` adds its views and tables."""
    memset(file, 0, sizeof(RewrittenFile))
    file.sections = <SectionRow*>sections.start + row.first_section
    file.count = row.section_count
    file.first_section = <SectionNumber>row.first_section
    file.symbols = <SymbolRow*>symbols.start + row.first_symbol
    file.first_symbol = <SymbolNumber>row.first_symbol
    file.symbol_count = row.symbol_count
    file.early = mode == MODE_EARLY_CODE or mode == MODE_EARLY_CAPSULES
    file.update = mode & UPDATE_ANY != 0
    scratch_init(&file.scratch)


cdef str text_of(int reason):
    """Return the text that describes a RewriteFaultReason to a user."""
    return {
        R_CUT_OFF: "it is cut off",
        R_RECORD: "capsule record is unknown",
        R_BITMAP: "capsule bitmap is empty or runs past the capsule",
        R_INSTRUCTION_COUNT: "capsule and text differ in the number of instructions",
        R_LAST_SLOT: "capsule does not end with the record of the last instruction",
        R_INFO: "attribute record is malformed",
        R_REGISTERS: "register table is malformed",
        R_FRAME: "FDE is malformed",
        R_FRAME_OP: "call frame instruction is not supported",
        R_LINE_UNIT: "line unit is malformed or not DWARF 2 or 3",
        R_LINE_OP: "line number opcode is not supported",
        R_LINE_RELOCATION: "relocation fits no line program",
        R_TABLE: "jump table has a relocation outside of it",
        R_WHOLE: "",            # the file is valid: the caller reports that it cannot change
    }[reason]


def rewrite_exits(ObjectTables objects not None, list steps not None):
    """Rewrite kernels as in nvlink's output: (arena, sections, symbols, faults, slowed)."""
    # A step is the number of a file with a MODE_ number or UPDATE_ bits, which say what to change.
    # Items of `faults` are (file, SectionRow, offset in the section, text), those of `slowed` are
    # (file, number of instructions after which code waits longer than in nvlink's output).
    cdef Table sections = objects.sections.copy(), symbols = objects.symbols.copy()
    cdef ObjectsView view
    cdef const FileRow* row
    cdef NewContents fresh
    cdef RewrittenFile file
    cdef RewriteFault fault
    cdef Guarded guarded
    cdef size_t number
    cdef int mode
    cdef bint done
    cdef Scratch scratch
    cdef list faults = [], slowed = []
    objects.view(&view)
    fresh.base = round_up(view.arena_size, CONTENTS_ALIGNMENT)
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &fresh.data, 1)
        for number, mode in steps:
            if (not MODE_NO_BARRIERS <= mode <= MODE_GUARDED
                    and (mode & ~<int>UPDATE_ANY or not mode)):
                raise ValueError(f"mode {mode} is not known")
            if number >= view.file_count:
                raise IndexError(f"file {number} of {view.file_count}")
            row = &view.files[number]
            start_file(&file, sections, symbols, row, mode)
            file.drops_trap_waits = not view.traits & TRAIT_EARLY_FILES
            memset(&guarded, 0, sizeof(Guarded))
            set_fault(&fault, 0, 0, R_MEMORY)
            with nogil:
                done = (not scratch.failed and open_views(&file, view.arena, &fresh)
                        and rewrite(&file, mode, &guarded, &fault)
                        and put_contents(&file, &fresh))
                scratch_free(&file.scratch)
            if not done:
                check_memory(fault.reason != R_MEMORY)
                faults.append((number, row.first_section + fault.section, fault.offset,
                               text_of(fault.reason)))
            if guarded.others:
                slowed.append((number, guarded.others))
        if fresh.data.count == 0:
            return objects.arena, objects.sections, objects.symbols, faults, slowed
        return copy_arena(&view, &fresh), sections, symbols, faults, slowed
    finally:
        scratch_free(&scratch)
