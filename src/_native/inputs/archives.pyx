"""Archives: offset, name and kind of each member, in every dialect.

pylink/inputs/archiveformat.py has the format, archivefaults.py the words for what is wrong.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memchr

from base.memory cimport check_memory
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_vector
from base.texts cimport has_prefix, has_text, is_named
from base.vector cimport Vec, vec_push, vec_to_bytes
from containernumbers cimport END_OFFSET, HEADER_SIZE, NAME_SIZE, SIZE_DIGITS, SIZE_OFFSET
from outcomes cimport (
    A_CUT, A_EMPTY_NAME, A_END, A_GOOD, A_NAME_LENGTH, A_NAME_OFFSET, A_NAME_RANGE, A_NO_NAMES,
    A_PLACE, A_RANGE, A_SIZE,
)
from read.filekinds cimport input_kind

cdef extern from "Python.h":
    str PyUnicode_DecodeFSDefaultAndSize(const char* text, Py_ssize_t size)

# One member. Offsets count from the beginning of the data, except for `header` and `place`.
cdef packed struct MemberRow:
    uint64_t header             # offset from the beginning of the archive
    uint64_t offset             # offset of the contents; unused for thin archives
    uint64_t size               # bytes of the contents
    int64_t place               # offset of its header in the archive `name`; -1: it is in no other
    uint64_t name               # offset of the name in a header, the long names, or the contents
    uint32_t name_size
    uint8_t kind                # an InputKind; 0 in thin archives, which lack the contents
    uint8_t inline              # the name stands before the contents
    uint16_t spare              # 0

# An archive whose members are listed one after the other.
ctypedef struct ArchiveWalk:
    const uint8_t* data         # bytes of the file with the archive; offsets begin here
    uint64_t start              # offset of the archive
    uint64_t end                # offset of its end
    uint64_t next               # offset of the next header
    bint is_thin
    uint64_t names              # offset of the long names, 0 before they are found
    uint64_t names_size         # bytes of the long names
    uint64_t value              # if there is a fault: the number that is wrong
    uint64_t limit              # if there is a fault: what `value` must not exceed
    Vec rows                    # MemberRow


# The archive is `size` bytes from `start` in `data`. `state` is () at first, then what the last
# call returned: offsets of the next header and of the long names, and the long names' size. The
# returned state is None at the end of the archive and after a fault.
def list_members(data, uint64_t start, uint64_t size, uint64_t max_members, tuple state not None):
    """List the next members of an archive, at most `max_members`: (rows, state, fault)."""
    cdef Py_buffer view
    cdef ArchiveWalk walk
    cdef int reason = A_GOOD
    cdef Scratch scratch
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &walk.rows, sizeof(MemberRow))
        if start > <uint64_t>view.len or size > <uint64_t>view.len - start or size < 8:
            raise IndexError("the archive runs past the data")
        walk.data = <const uint8_t*>view.buf
        walk.start = start
        walk.end = start + size
        walk.next = start + 8
        walk.names = walk.names_size = walk.value = walk.limit = 0
        if state:
            walk.next, walk.names, walk.names_size = state
            if (walk.next < start + 8 or walk.names > walk.end
                    or walk.names_size > walk.end - walk.names):
                raise IndexError("members before the archive")
        with nogil:
            walk.is_thin = has_text(walk.data + start, b"!<thin>\n")
            while (not scratch.failed and reason == A_GOOD and walk.next < walk.end
                   and walk.rows.count < max_members):
                scratch.failed = not read_header(&walk, &reason)
        check_memory(not scratch.failed)
        more = reason == A_GOOD and walk.next < walk.end
        return (
            vec_to_bytes(&walk.rows),
            (walk.next, walk.names, walk.names_size) if more else None,
            (reason, walk.next - start, walk.value, walk.limit) if reason != A_GOOD else None,
        )
    finally:
        scratch_free(&scratch)
        PyBuffer_Release(&view)


# Names start with `prefix`. `extents` has each member's offset and size (u64) in `data`, and
# `inline` a byte that says whether the name is in front of the contents.
def split_rows(bytes data not None, bytes rows not None, str prefix):
    """Split rows of members into columns: (names, kinds, extents, inline)."""
    cdef Py_ssize_t member_count = PyBytes_GET_SIZE(rows) // sizeof(MemberRow), i
    cdef const MemberRow* row = <const MemberRow*>PyBytes_AS_STRING(rows)
    cdef uint64_t limit = <uint64_t>PyBytes_GET_SIZE(data)
    cdef bytes kinds = PyBytes_FromStringAndSize(NULL, member_count)
    cdef bytes extents = PyBytes_FromStringAndSize(NULL, member_count * 16)
    cdef bytes inlines = PyBytes_FromStringAndSize(NULL, member_count)
    cdef uint64_t* extent = <uint64_t*>PyBytes_AS_STRING(extents)
    cdef list names = []
    for i in range(member_count):
        if row[i].name > limit or row[i].name_size > limit - row[i].name:
            raise IndexError("a name outside the data")
        names.append(prefix + PyUnicode_DecodeFSDefaultAndSize(
            PyBytes_AS_STRING(data) + row[i].name, row[i].name_size))
        PyBytes_AS_STRING(kinds)[i] = <char>row[i].kind
        PyBytes_AS_STRING(inlines)[i] = <char>row[i].inline
        extent[2 * i] = row[i].offset
        extent[2 * i + 1] = row[i].size
    return names, kinds, extents, inlines


cdef bint read_header(ArchiveWalk* walk, int* reason) noexcept nogil:
    """Read the header at `next`, add its member, and move `next` to the header after it.

    The symbol indexes `/` and `/SYM64/` and the long names `//` are not members; BSD's index
    `__.SYMDEF` is one. If the header is damaged, sets `reason` to an ArchiveFault instead. False
    without memory.
    """
    cdef const uint8_t* header = walk.data + walk.next
    cdef uint64_t remaining = walk.end - walk.next, size = 0, offset = walk.next + HEADER_SIZE
    cdef uint32_t length = NAME_SIZE
    cdef bint is_index, is_names, is_external
    if remaining < HEADER_SIZE:
        if is_padding(header, remaining):
            walk.next = walk.end
        else:
            reason[0] = A_CUT
        return True
    if header[END_OFFSET] != c"`" or header[END_OFFSET + 1] != c"\n":
        reason[0] = A_END
        return True
    while length and header[length - 1] == c" ":
        length -= 1
    if not parse_size(header, &size):
        reason[0] = A_SIZE
        return True
    is_index = is_named(header, length, b"/") or is_named(header, length, b"/SYM64/")
    is_names = is_named(header, length, b"//")
    is_external = walk.is_thin and not is_index and not is_names
    if not is_external and size > remaining - HEADER_SIZE:
        walk.value = size
        walk.limit = remaining - HEADER_SIZE
        reason[0] = A_RANGE
        return True
    if is_names:
        walk.names = offset
        walk.names_size = size
    elif not is_index:
        if not add_member(walk, length, size, reason):
            return False
        if reason[0] != A_GOOD:
            return True
    walk.next = offset if is_external else offset + size + (size & 1)
    return True


cdef bint is_padding(const uint8_t* data, uint64_t size) noexcept nogil:
    """Return whether these bytes after the last member are line feeds and zeros."""
    cdef uint64_t i
    for i in range(size):
        if data[i] != c"\n" and data[i] != 0:
            return False
    return True


cdef bint parse_size(const uint8_t* header, uint64_t* size) noexcept nogil:
    """Read a member's size from its header. Blanks may surround it; False if it is not a number."""
    cdef uint32_t first = SIZE_OFFSET, last = SIZE_OFFSET + SIZE_DIGITS
    while first < last and header[first] == c" ":
        first += 1
    while first < last and header[last - 1] == c" ":
        last -= 1
    return parse_decimal(header + first, last - first, size)


cdef bint add_member(ArchiveWalk* walk, uint32_t length, uint64_t size, int* reason) noexcept nogil:
    """Add the member of `size` bytes whose header is at `next`; False without memory.

    `length` is that of the name in the header, without the blanks at its end. If the name has a
    fault, no member is added, and `reason` is set.
    """
    cdef const uint8_t* header = walk.data + walk.next
    cdef MemberRow* row = <MemberRow*>vec_push(&walk.rows)
    if row == NULL:
        return False
    row.header = walk.next - walk.start
    row.offset = walk.next + HEADER_SIZE
    row.size = size
    row.place = -1
    row.name = walk.next
    row.name_size = length
    row.kind = row.inline = row.spare = 0
    if length and header[0] == c"/":
        reason[0] = read_long_name(walk, row, header, length)
    elif has_prefix(header, length, b"#1/"):
        reason[0] = read_inline_name(walk, row, header, length)
    elif length and header[length - 1] == c"/":
        # GNU ends a name with a slash, so that it can end in blanks; BSD does not.
        row.name_size -= 1
    if reason[0] != A_GOOD:
        walk.rows.count -= 1
    elif not walk.is_thin:
        row.kind = input_kind(walk.data + row.offset, row.size)
    return True


cdef bint parse_decimal(const uint8_t* text, uint32_t size, uint64_t* value) noexcept nogil:
    """Set `value` to the decimal number in `text`; False if `text` is not a number.

    All callers pass at most 15 bytes, so `value` does not overflow.
    """
    cdef uint32_t i
    value[0] = 0
    for i in range(size):
        if text[i] < c"0" or text[i] > c"9":
            return False
        value[0] = value[0] * 10 + (text[i] - c"0")
    return size != 0


cdef int read_inline_name(ArchiveWalk* walk, MemberRow* row, const uint8_t* field,
                          uint32_t length) noexcept nogil:
    """Set the name of a member `#1/N`: the N bytes before its contents. Returns an ArchiveFault."""
    cdef uint64_t size = 0, used
    if not parse_decimal(field + 3, length - 3, &size) or size > row.size:     # after "#1/"
        walk.limit = row.size
        return A_NAME_LENGTH
    row.name = row.offset
    used = min(size, walk.end - row.offset)    # a thin archive has no contents
    while used and walk.data[row.name + used - 1] == 0:
        used -= 1
    row.name_size = <uint32_t>used
    row.offset += size
    row.size -= size
    row.inline = True
    return A_GOOD


cdef int read_long_name(ArchiveWalk* walk, MemberRow* row, const uint8_t* field,
                        uint32_t length) noexcept nogil:
    """Set the long name that `/OFFSET` or `/OFFSET:PLACE` stands for. Returns an ArchiveFault.

    OFFSET is that of the name in the long names. With PLACE, the name is that of an archive, and
    the member is the one whose header is at PLACE there.
    """
    cdef uint64_t offset = 0, place = 0, size
    cdef const uint8_t* colon = <const uint8_t*>memchr(field, c":", length)
    cdef uint32_t digits = <uint32_t>(colon - field if colon != NULL else length)
    cdef const uint8_t* name
    cdef const uint8_t* end
    if not parse_decimal(field + 1, digits - 1, &offset):
        return A_NAME_OFFSET
    if colon != NULL:
        if not parse_decimal(colon + 1, length - digits - 1, &place):
            return A_PLACE
        row.place = <int64_t>place
    if walk.names == 0:
        return A_NO_NAMES
    walk.value = offset
    walk.limit = walk.names_size
    if offset >= walk.names_size:
        return A_NAME_RANGE
    # GNU ends each long name with a slash and a line feed, others with a line feed or a NUL.
    name = walk.data + walk.names + offset
    size = walk.names_size - offset
    end = <const uint8_t*>memchr(name, c"\n", size)
    if end != NULL:
        size = end - name
    end = <const uint8_t*>memchr(name, 0, size)
    if end != NULL:
        size = end - name
    if size and name[size - 1] == c"/":
        size -= 1
    if size == 0:
        return A_EMPTY_NAME
    row.name = walk.names + offset
    row.name_size = <uint32_t>min(size, <uint64_t>0x7fffffff)
    return A_GOOD
