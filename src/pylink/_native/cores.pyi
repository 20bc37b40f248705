"""The number of threads that the kernels of this process use.

A kernel uses one more thread for each 4 MiB that it moves, if one is free, at most 32 in all.
"""

def count_cores() -> int:
    """Return how many threads this process may use: PYLINK_THREADS, or its number of processors.

    The processors are those that its affinity and the quota of its control group allow, at least 1.
    Links that run side by side share the threads.
    """

def read_quota(groups: bytes, root: bytes) -> int:
    """Return how many processors quotas of a control group and its parents allow, rounded up.

    `groups` is a file such as /proc/self/cgroup, `root` the directory where control groups are
    mounted. The smallest quota counts; in version 1 of control groups, that of the root. Without a
    quota, the result is 0.
    """

def take_threads(most: int) -> int:
    """Reserve up to `most` free threads of this process besides the caller's; return how many."""

def return_threads(count: int) -> None:
    """Release threads that `take_threads` reserved."""

def spare_threads(most: int, size: int) -> int:
    """Return how many threads, at most `most`, this thread's link may add to move `size` bytes.

    There is at most one for each 4 MiB (`set_bytes_per_thread`) of `size`. None is reserved.
    """

def use_threads(count: int) -> int:
    """Set how many threads this thread's links use (0: those free); return the old number."""

def set_bytes_per_thread(size: int) -> int:
    """Set how many bytes of work each further thread needs; return the old number.

    With 0, a link uses its threads for any input. Tests need this, since their inputs are small.
    """
