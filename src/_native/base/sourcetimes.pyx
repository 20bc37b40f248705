"""Sizes and times of Python files, compared before a bundle of their compiled code is used.

No other module of the package is loaded then, so this one imports none.
"""

from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport int64_t

from base.filestatus cimport Stat, fstatat

cdef extern from "Python.h":
    bytes PyUnicode_EncodeFSDefault(object name)


def are_unchanged(files, int directory):
    """Return whether each file below `directory` has the size (bytes) and time (ns) in its row."""
    # `directory` is the descriptor of that directory. Rows without a path are ignored.
    cdef Stat status
    cdef int64_t size, time
    cdef bytes name
    cdef tuple row
    for row in files:
        if not row[1]:
            continue
        # A Row of pylink/startup/bundle.py: its path, size and time begin at index 1.
        name, size, time = PyUnicode_EncodeFSDefault(row[1]), row[2], row[3]
        if (fstatat(directory, PyBytes_AS_STRING(name), &status, 0) != 0 or status.st_size != size
                or status.seconds * 1000000000 + status.nanoseconds != time):
            return False
    return True
