# Functions that the driver supplies (docs/format-notes/runtime-functions.md): nobody defines them.

from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memcmp


cdef inline bint is_runtime_function(const uint8_t* name, uint32_t size) noexcept nogil:
    # A line each; those that end in a star stand for all that begin so.
    cdef const char* line = (
        b"malloc\nfree\nvprintf\nvfprintf\n__assertfail\n__cuda_syscall*\n"
        b"cnpDeviceGetAttribute\ncnpEventCreate\ncnpEventDestroy\ncnpEventRecord\n"
        b"cnpGetDevice\ncnpGetDeviceCount\ncnpGetLastError\ncnpGetParameterBuffer\n"
        b"cnpGetParameterBufferV2\ncnpLaunchDevice\ncnpLaunchDeviceV2\ncnpStreamCreate\n"
        b"cnpStreamDestroy\ncnpStreamWaitEvent\ncudaGraphKernelNodeSetEnabled\n"
        b"cudaGraphKernelNodeSetGridDim\ncudaGraphKernelNodeSetParam\n"
        b"cudaGraphKernelNodeUpdatesApply\ncudaGraphLaunch\ncudaGraphSetConditional\n")
    cdef uint32_t length
    while line[0]:
        length = 0
        while line[length] != c'\n' and line[length] != c'*':
            length += 1
        if ((size == length or (size > length and line[length] == c'*'))
                and memcmp(name, line, length) == 0):
            return True
        line += length
        while line[0] != c'\n':
            line += 1
        line += 1
    return False
