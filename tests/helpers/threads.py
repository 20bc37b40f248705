"""Links by several threads, even if their inputs are too small for more than one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pylink._native import cores

# Numbers of threads to test: results must not depend on them.
THREADS = (1, 2, 3, 8)


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Yield a context in which links of this thread use `count` threads."""
    bytes_per_thread, before = cores.set_bytes_per_thread(0), cores.use_threads(count)
    try:
        yield
    finally:
        cores.set_bytes_per_thread(bytes_per_thread)
        cores.use_threads(before)
