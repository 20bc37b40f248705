# Threads for a sequence of independent items, such as files. No task needs Python, and most wait
# for memory and page faults, which several cores can do at the same time.
#
# As many threads work as there are free cores, but no more than the bytes to move are worth
# (`base/threads.h`). Threads take a few items at a time, so that a busy core takes fewer. What a
# task writes depends on its item alone, so results do not depend on which thread has which items.

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint64_t

cdef extern from "<pthread.h>" nogil:
    ctypedef struct pthread_t:
        pass
    int pthread_create(pthread_t* thread, const void* attributes,
                       void* (*start)(void*) noexcept nogil, void* argument)
    int pthread_join(pthread_t thread, void** result)

cdef extern from "base/threads.h" nogil:
    size_t claim_items(size_t* next, size_t run) noexcept
    void set_mark(uint8_t* mark) noexcept
    size_t claim "pylink_claim"(uint64_t size, size_t items, size_t most) noexcept
    void release_threads "pylink_release_threads"(size_t count) noexcept
    size_t thread_number "pylink_thread_number"

cdef enum:
    RUN = 4                     # most items that a thread takes at a time
    # Least number of times that each helper, a thread besides the link's, can take items, if there
    # are enough of them.
    SHARES = 8
    MOST_THREADS = 32           # most threads that work on the same items, the link's included
    # Work on the table rows of one file, as the number of bytes that are moved in the same time.
    FILE_COST = 16 << 10


# A function that works on one item, given by number; `context` is what all items share.
ctypedef void (*Task)(void* context, size_t item) noexcept nogil

# A sequence of independent items, numbered from 0, while threads work on them.
ctypedef struct ThreadWork:
    Task task
    void* context               # passed to `task`
    size_t count                # number of items
    size_t run                  # items that a thread takes at a time
    size_t next                 # the first item that no thread has taken
    size_t threads              # number of threads that have started, the link's included


cdef inline void run_items(ThreadWork* work) noexcept nogil:
    """Take items and do the task for them until none is left."""
    cdef size_t first = claim_items(&work.next, work.run), item
    while first < work.count:
        for item in range(first, min(first + work.run, work.count)):
            work.task(work.context, item)
        first = claim_items(&work.next, work.run)


cdef inline void* run_helper(void* argument) noexcept nogil:
    """Run a helper, a thread besides the link's; `argument` is the ThreadWork. Returns NULL."""
    global thread_number
    cdef ThreadWork* work = <ThreadWork*>argument
    thread_number = claim_items(&work.threads, 1)
    run_items(work)
    return NULL


cdef inline void run_work(ThreadWork* work, size_t helpers) noexcept nogil:
    """Do the task for all items, with up to `helpers` threads besides this one.

    `helpers` is less than MOST_THREADS.
    """
    cdef pthread_t helper[MOST_THREADS]
    cdef size_t started = 0, i
    work.next = 0
    work.threads = 1
    while started < helpers and pthread_create(&helper[started], NULL, run_helper, work) == 0:
        started += 1
    run_items(work)
    for i in range(started):
        pthread_join(helper[i], NULL)


cdef inline void run_each(Task task, void* context, size_t count, size_t size) noexcept nogil:
    """Call `task` for items 0 to `count` - 1, on the threads that moving `size` bytes is worth."""
    cdef size_t helpers = claim(size, count, MOST_THREADS - 1)
    cdef ThreadWork work
    work.task = task
    work.context = context
    work.count = count
    work.run = max(<size_t>1, min(<size_t>RUN, count // (SHARES * max(helpers, <size_t>1))))
    run_work(&work, helpers)
    release_threads(helpers)


cdef inline void run_parts(Task task, void* context, size_t parts) noexcept nogil:
    """Call `task` for parts 0 to `parts` - 1 of some work, on up to `parts` threads.

    A part writes to memory of its own. The caller has claimed `parts` - 1 threads, and releases
    them. All parts are done even if no thread can be started.
    """
    cdef ThreadWork work
    work.task = task
    work.context = context
    work.count = parts
    work.run = 1
    run_work(&work, parts - 1)
