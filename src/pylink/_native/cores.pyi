"""The number of threads that the kernels of this process use.

A kernel uses one more thread for each 4 MiB that it moves, at most 32.
"""

def count_cores() -> int:
    """Return the threads of this process: PYLINK_THREADS, or the processors that it may use.

    These follow from its affinity and the quota of its control group; at least 1. Links that run
    side by side share the threads.
    """

def read_quota(groups: bytes, root: bytes) -> int:
    """Return the processors that quotas of a control group and its parents allow, rounded up.

    `groups` is a file such as /proc/self/cgroup, `root` the directory of all groups. Without a
    quota, the result is 0.
    """

def take_threads(most: int) -> int:
    """Reserve up to `most` threads of the total for the caller.

    Returns the number of reserved threads.
    """

def return_threads(count: int) -> None:
    """Release threads that `take_threads` reserved."""

def spare_threads(most: int, size: int) -> int:
    """Count the threads that the link of the calling thread may use besides it, up to `most`.

    These are never more than moving `size` bytes is worth. None is reserved.
    """

def use_threads(count: int) -> int:
    """Set the number of threads for links of the calling thread; 0 for the total.

    Returns the previous number.
    """

def set_worth(size: int) -> int:
    """Set the bytes for which one more thread is used, 0 for any; returns the previous size.

    For tests, which have small inputs.
    """
