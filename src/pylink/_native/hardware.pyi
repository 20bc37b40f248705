"""Counters of the processor, if the system allows them for ordinary processes."""

CYCLES: int
INSTRUCTIONS: int

def open_counter(number: int) -> int:
    """Open a counter, CYCLES or INSTRUCTIONS: returns a descriptor, or a negative errno.

    The counter counts for the calling thread and threads that it starts later, without time in the
    system's kernel. Reading the descriptor gives three u64: the count, and the nanoseconds for
    which it was enabled and for which it ran. Source: perf_event_open(2).
    """
