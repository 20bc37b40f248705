"""Counters of the processor, if the system allows them for ordinary processes."""

CYCLES: int
INSTRUCTIONS: int

def open_counter(number: int) -> int:
    """Open a counter for this process and its later threads: a descriptor, or a negative errno.

    Time in the system's kernel is not counted. Reading the descriptor gives three u64: the count,
    and the nanoseconds for which it was enabled and for which it ran. Source: perf_event_open(2).
    """
