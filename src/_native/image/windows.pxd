# Writing the output, to memory or to a file: in windows, which are runs of bytes of the output.
# Each thread takes the next window that no thread has begun, in the order of the output.
#
# If the output is in memory, a window is made in its place. If it is a file, a thread makes its
# windows in one buffer, one after the other, and writes the file from there; a window with a
# `source` is written from that. A mapped file, or the whole image in memory, would take as many new
# pages as the output has, and a large link waits longer for new pages than for anything else
# (`base/hugepages.pxd`).

from libc.errno cimport EINTR, EIO, ENOMEM, errno
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport qsort
from libc.string cimport memcpy, memset

from base.elf64 cimport round_up
from base.hugepages cimport prefer_large_pages
from base.posix cimport c_pwrite
from base.scratch cimport Scratch, scratch_room
from base.threads cimport MOST_THREADS, claim, claim_items, release_threads, run_parts
from base.vector cimport Vec, vec_push

cdef extern from "image/windows.h":
    bint reserve "pylink_reserve"(int file, uint64_t size) noexcept nogil

cdef enum:
    # Limit in bytes of a window (a longer extent is a window of its own) and of a call that writes.
    # They are few enough that the processor's caches still hold them when they are written. Linux
    # keeps a file in memory in parts as large as the calls were; for a part of 2 MiB a hypervisor
    # may have to provide memory first.
    WINDOW = 1 << 20
    CACHE_LINE = 64             # bytes; the buffers of two threads share no line


# Consecutive bytes of the output that one thread makes at a time.
ctypedef struct Window:
    uint64_t start              # offset in the output
    uint64_t size               # bytes
    size_t first                # row of the table, or extent of the contents, that it begins with
    size_t last                 # one after its last row or extent
    uint32_t first_patch        # contents: index in `patch_order` of its first patch
    uint32_t last_patch         # contents: one after the index of its last patch
    # CONTENTS (also for string tables), HEADERS, or the section kind of a symbol or _shndx table.
    int32_t kind
    const uint8_t* source       # bytes to copy into it; NULL: the queue's `make` writes them


# A function that writes the bytes of a window to `to`; `context` is that of the WindowQueue.
ctypedef void (*MakeWindow)(void* context, const Window* window, uint8_t* to) noexcept nogil


# The windows of the output, which threads take one after the other, and where their bytes go.
ctypedef struct WindowQueue:
    MakeWindow make
    void* context
    const Window* windows
    size_t count                # number of windows
    uint8_t* memory             # the whole output; NULL: write to `file`
    int file                    # descriptor, if `memory` is NULL
    size_t room                 # bytes of a buffer: enough for the largest window of `make`
    uint8_t* buffers            # for a file: a buffer for each thread, one after the other; or NULL
    size_t next                 # first window that no thread has begun
    int error                   # errno of a call that failed, or 0


cdef inline bint list_rows(Vec* windows, uint64_t start, size_t row_size, size_t count,
                           int32_t kind) noexcept nogil:
    """Add windows of a table of `count` rows, to be made by `make`; False without memory.

    `start` is the table's offset in the output, `kind` what the windows get as their `kind`.
    """
    cdef size_t first = 0, last
    cdef Window* window
    while first < count:
        last = min(count, first + WINDOW // row_size)
        window = <Window*>vec_push(windows)
        if window == NULL:
            return False
        memset(window, 0, sizeof(Window))
        window.start = start + first * row_size
        window.size = (last - first) * row_size
        window.first = first
        window.last = last
        window.kind = kind
        first = last
    return True


cdef inline bint list_bytes(Vec* windows, uint64_t start, const uint8_t* source,
                            uint64_t size) noexcept nogil:
    """Add windows of `size` bytes that are copied from `source`; False without memory.

    `start` is their offset in the output.
    """
    cdef uint64_t offset = 0
    cdef Window* window
    while offset < size:
        window = <Window*>vec_push(windows)
        if window == NULL:
            return False
        memset(window, 0, sizeof(Window))
        window.start = start + offset
        window.size = min(size - offset, <uint64_t>WINDOW)
        window.source = source + offset
        offset += window.size
    return True


cdef inline int compare_windows(const void* a, const void* b) noexcept nogil:
    """Order Windows by their offset in the output, for qsort."""
    cdef uint64_t x = (<const Window*>a).start, y = (<const Window*>b).start
    return -1 if x < y else x > y


cdef inline void sort_windows(Vec* windows) noexcept nogil:
    """Put windows into the order of the output. None is empty, so no two begin together."""
    if windows.count:
        qsort(windows.data, windows.count, sizeof(Window), compare_windows)


cdef inline int write_at(int file, const uint8_t* data, uint64_t size,
                         uint64_t offset) noexcept nogil:
    """Write `size` bytes at an offset of the file. Returns errno, or 0 if all are written."""
    cdef ssize_t written
    while size:
        written = c_pwrite(file, data, min(size, <uint64_t>WINDOW), <int64_t>offset)
        if written < 0 and errno == EINTR:
            continue
        if written <= 0:
            return errno if written < 0 else EIO
        data += written
        offset += <uint64_t>written
        size -= <uint64_t>written
    return 0


cdef inline void write_windows(void* context, size_t thread) noexcept nogil:
    """Make windows of a WindowQueue, as one thread, until all are taken or its own write fails.

    `context` is the queue, `thread` the number of the thread's buffer.
    """
    cdef WindowQueue* queue = <WindowQueue*>context
    cdef uint8_t* buffer = NULL if queue.buffers == NULL else queue.buffers + thread * queue.room
    cdef const uint8_t* source
    cdef const Window* window
    cdef size_t number
    cdef int error = 0
    number = claim_items(&queue.next, 1)
    while number < queue.count and error == 0:
        window = &queue.windows[number]
        source = window.source
        if queue.memory != NULL:
            if source != NULL:
                memcpy(queue.memory + window.start, source, window.size)
            else:
                queue.make(queue.context, window, queue.memory + window.start)
        else:
            if source == NULL:
                queue.make(queue.context, window, buffer)
                source = buffer
            error = write_at(queue.file, source, window.size, window.start)
        number = claim_items(&queue.next, 1)
    if error:
        queue.error = error


cdef inline int make_windows(WindowQueue* queue, Scratch* scratch) noexcept nogil:
    """Make all windows. Returns the errno of a call that failed, or 0.

    The buffers of the threads are memory of `scratch`.
    """
    cdef uint64_t size = 0
    cdef size_t i, helpers
    queue.room = queue.next = 0
    queue.error = 0
    queue.buffers = NULL
    for i in range(queue.count):
        size += queue.windows[i].size
        if queue.windows[i].source == NULL:
            queue.room = max(queue.room, <size_t>queue.windows[i].size)
    queue.room = round_up(queue.room, CACHE_LINE)
    helpers = claim(size, queue.count, MOST_THREADS - 1)
    if queue.memory == NULL and queue.room:
        queue.buffers = <uint8_t*>scratch_room(scratch, helpers + 1, queue.room)
    if scratch.failed:
        queue.error = ENOMEM
    else:
        run_parts(write_windows, queue, helpers + 1)
    release_threads(helpers)
    return queue.error


cdef inline void clear_gaps(const WindowQueue* queue, uint64_t size) noexcept nogil:
    """Write zeros to the memory outside of all windows. A file has these zeros from the start.

    `size` is the number of bytes of the output.
    """
    cdef uint64_t offset = 0
    cdef size_t i
    if queue.memory == NULL:
        return
    prefer_large_pages(queue.memory, size)
    for i in range(queue.count):
        memset(queue.memory + offset, 0, queue.windows[i].start - offset)
        offset = queue.windows[i].start + queue.windows[i].size
    memset(queue.memory + offset, 0, size - offset)
