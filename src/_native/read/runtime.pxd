# Functions that the driver supplies (docs/format-notes/runtime-functions.md): nobody defines them.

from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport strchr


cdef inline bint is_runtime_function(const uint8_t* name, uint32_t size) noexcept nogil:
    """Whether the driver supplies a function of that name."""
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
    cdef uint32_t same
    while line[0]:
        same = 0
        while same < size and line[same] == name[same] and line[same] != c'\n':
            same += 1
        if line[same] == c'*' or (line[same] == c'\n' and same == size):
            return True
        line = strchr(line, c'\n') + 1
    return False
