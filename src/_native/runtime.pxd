# Functions that the driver supplies (docs/format-notes/runtime-functions.md): nobody defines them.

from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memcmp


cdef inline bint is_runtime_function(const uint8_t* name, uint32_t size) noexcept nogil:
    # A line each; those that end in a star stand for all that begin so.
    cdef const char* line = (
        b"malloc\nfree\nvprintf\nvfprintf\n__assertfail\n__cuda_syscall*\n"
        b"cnpCtxSynchronize\ncnpDeviceGetAttribute\ncnpEventCreate\ncnpEventDestroy\n"
        b"cnpEventRecord\ncnpFuncGetAttribute\ncnpGetCacheConfig\ncnpGetDevice\n"
        b"cnpGetDeviceCount\ncnpGetLastError\ncnpGetLimit\ncnpGetParameterBuffer\n"
        b"cnpGetParameterBufferV2\ncnpGetSharedMemConfig\ncnpLaunchDevice\ncnpLaunchDeviceV2\n"
        b"cnpSetLastError\ncnpStreamCreate\ncnpStreamDestroy\ncnpStreamWaitEvent\n"
        b"cudaGraphKernelNodeSetEnabled\n"
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
