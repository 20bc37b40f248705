"""Counters of the processor, where the kernel gives them to an ordinary process."""

CYCLES: int
INSTRUCTIONS: int

def open_counter(number: int) -> int:
    """A descriptor that counts for this process and its later threads, or a negative errno.

    Kernel time is omitted. Reading the descriptor gives three u64: the count, and the nanoseconds
    for which it was asked for and for which it ran. Source: perf_event_open(2).
    """
