"""How many threads the kernels of this process use.

A kernel uses more than one where the bytes that it moves are worth it: one more for each 4 MiB, and
32 at most.
"""

def count_cores() -> int:
    """The threads of this process: PYLINK_THREADS, or the processors that it may use.

    Those are what its affinity and the quota of its control group allow; at least 1. Links that run
    side by side share them.
    """

def read_quota(groups: bytes, root: bytes) -> int:
    """Processors that the quota of a control group and those around it allow, rounded up; 0 is all.

    ``groups`` is a file such as /proc/self/cgroup, ``root`` the folder of all groups.
    """

def take_threads(most: int) -> int:
    """Take up to ``most`` threads from that total, for threads of the caller's.

    Returns how many there were.
    """

def return_threads(count: int) -> None:
    """Give back what ``take_threads`` took."""

def spare_threads(most: int, size: int) -> int:
    """How many threads the link of the calling thread may use besides it now, up to ``most``.

    No more than are worth moving ``size`` bytes. They are not taken.
    """

def use_threads(count: int) -> int:
    """Have links of the calling thread use so many, whatever the total; 0 is the total.

    Returns the number before.
    """

def set_worth(size: int) -> int:
    """Have one more thread be worth ``size`` bytes to move, 0 for any; returns the size before.

    For tests, which have small inputs.
    """
