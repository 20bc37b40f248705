# Two threads for one row of independent items: copying is bound by memory and page faults, which a
# second core halves, and nothing a kernel does here needs the interpreter.
#
# Items are handed out in runs, so that a busy core takes fewer. What a task writes depends on its
# item alone: results are the same however the items fall.

from libc.stddef cimport size_t

cdef extern from "<pthread.h>" nogil:
    ctypedef struct pthread_t:
        pass
    int pthread_create(pthread_t* thread, const void* attributes,
                       void* (*start)(void*) noexcept nogil, void* argument)
    int pthread_join(pthread_t thread, void** result)
    pthread_t pthread_self()
    int pthread_equal(pthread_t one, pthread_t other)

cdef extern from "base/threads.h":
    size_t take_run(size_t* next, size_t run) noexcept nogil

cdef enum:
    RUN = 4                     # items taken at a time, fewer where there are few
    SHARES = 8                  # runs that there should be, so that a busy core takes fewer
    WORTH_A_THREAD = 4 << 20    # bytes to move; starting a thread costs as much as moving 0.1 MB


ctypedef void (*Task)(void* context, size_t item) noexcept nogil

ctypedef struct Work:
    Task task
    void* context
    size_t count
    size_t run
    size_t next


cdef inline void* take_items(void* argument) noexcept nogil:
    cdef Work* work = <Work*>argument
    cdef size_t first = take_run(&work.next, work.run), item
    while first < work.count:
        for item in range(first, min(first + work.run, work.count)):
            work.task(work.context, item)
        first = take_run(&work.next, work.run)
    return NULL


cdef inline void for_each(Task task, void* context, size_t count, size_t size) noexcept nogil:
    """Call `task` for items 0 to `count` - 1, which move `size` bytes in all."""
    cdef Work work
    cdef pthread_t helper
    cdef bint helped
    work.task = task
    work.context = context
    work.count = count
    work.run = max(<size_t>1, min(<size_t>RUN, count // SHARES))
    work.next = 0
    helped = (size >= WORTH_A_THREAD and count > 1
              and pthread_create(&helper, NULL, take_items, &work) == 0)
    take_items(&work)
    if helped:
        pthread_join(helper, NULL)


ctypedef struct Half:
    Task task
    void* context


cdef inline void* second_half(void* argument) noexcept nogil:
    cdef Half* half = <Half*>argument
    half.task(half.context, 1)
    return NULL


cdef inline void in_halves(Task task, void* context, bint helped) noexcept nogil:
    """Call `task` for items 0 and 1, at once if `helped`: for what needs room of its own."""
    cdef Half half
    cdef pthread_t helper
    half.task = task
    half.context = context
    helped = helped and pthread_create(&helper, NULL, second_half, &half) == 0
    task(context, 0)
    if helped:
        pthread_join(helper, NULL)
    else:
        task(context, 1)
