"""Marks: the bytes that containers and cubins begin with, and a fast search for them."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t

cdef extern from "inputs/marks.h":
    size_t next_mark "pylink_next_mark"(
        const uint8_t* data, size_t at, size_t size, const char* const* marks,
        const size_t* sizes, size_t* number
    ) noexcept nogil


def find_marks(data not None, tuple marks not None):
    """Return offset and number of each mark in a buffer, in order; `marks` has one or two texts."""
    cdef Py_buffer view
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        return list_marks(<const uint8_t*>view.buf, <size_t>view.len, marks)
    finally:
        PyBuffer_Release(&view)


cdef list list_marks(const uint8_t* data, size_t size, tuple marks):
    """Return what `find_marks` returns."""
    cdef const char* texts[2]
    cdef size_t sizes[2]
    cdef size_t at = 0, number = 0
    cdef bytes mark
    cdef list places = []
    if len(marks) not in (1, 2):
        raise ValueError("one or two marks are searched for")
    for i in range(2):
        mark = marks[min(i, len(marks) - 1)]
        texts[i], sizes[i] = PyBytes_AS_STRING(mark), <size_t>PyBytes_GET_SIZE(mark)
        if sizes[i] < 2:
            raise ValueError("a mark has at least two bytes")
    while True:
        with nogil:
            at = next_mark(data, at, size, texts, sizes, &number)
        if at == size:
            return places
        places.append((at, number))
        at += 1
