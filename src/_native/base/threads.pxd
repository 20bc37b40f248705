# Threads for one row of independent items: copying is bound by memory and page faults, which more
# cores share, and nothing a kernel does here needs the interpreter.
#
# As many work as there are cores that nobody else uses, and never more than the bytes to move are
# worth (`base/threads.h`). Items are handed out in runs, so that a busy core takes fewer. What a
# task writes depends on its item alone: results are the same however the items fall.

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
    RUN = 4                     # items taken at a time; fewer if there are few items
    SHARES = 8                  # runs for each helper, so that a busy core takes fewer
    MOST_THREADS = 32           # for one row of items


ctypedef void (*Task)(void* context, size_t item) noexcept nogil

ctypedef struct Work:
    Task task
    void* context
    size_t count
    size_t run
    size_t next
    size_t threads              # number of threads that have started


cdef inline void run_items(Work* work) noexcept nogil:
    cdef size_t first = claim_items(&work.next, work.run), item
    while first < work.count:
        for item in range(first, min(first + work.run, work.count)):
            work.task(work.context, item)
        first = claim_items(&work.next, work.run)


cdef inline void* help_run(void* argument) noexcept nogil:
    global thread_number
    cdef Work* work = <Work*>argument
    thread_number = claim_items(&work.threads, 1)
    run_items(work)
    return NULL


cdef inline void run_work(Work* work, size_t helpers) noexcept nogil:
    """Have all items done by this thread and as many helpers as can be started."""
    cdef pthread_t helper[MOST_THREADS]
    cdef size_t started = 0, i
    work.next = 0
    work.threads = 1
    while started < helpers and pthread_create(&helper[started], NULL, help_run, work) == 0:
        started += 1
    run_items(work)
    for i in range(started):
        pthread_join(helper[i], NULL)


cdef inline void run_each(Task task, void* context, size_t count, size_t size) noexcept nogil:
    """Call `task` for items 0 to `count` - 1, which move `size` bytes in all."""
    cdef size_t helpers = claim(size, count, MOST_THREADS - 1)
    cdef Work work
    work.task = task
    work.context = context
    work.count = count
    work.run = max(<size_t>1, min(<size_t>RUN, count // (SHARES * max(helpers, <size_t>1))))
    run_work(&work, helpers)
    release_threads(helpers)


cdef inline void run_parts(Task task, void* context, size_t parts) noexcept nogil:
    """Call `task` for each of the parts that `claim` allows, for what needs room of its own.

    All are done even if no thread can be started. The threads stay claimed.
    """
    cdef Work work
    work.task = task
    work.context = context
    work.count = parts
    work.run = 1
    run_work(&work, parts - 1)
