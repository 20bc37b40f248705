/* How threads share a row of items. */
#ifndef PYLINK_BASE_THREADS_H
#define PYLINK_BASE_THREADS_H

#define take_run(next, run) __atomic_fetch_add((next), (run), __ATOMIC_RELAXED)

#endif
