# Functions that the driver supplies, so that no input defines them
# (docs/format-notes/runtime-functions.md).

from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport strchr


cdef inline bint is_runtime_function(const uint8_t* name, uint32_t size) noexcept nogil:
    """Return whether the driver supplies a function of that name."""
    # One name in each line; a star at its end stands for any characters.
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
    cdef uint32_t matched
    while line[0]:
        matched = 0
        while matched < size and line[matched] == name[matched] and line[matched] != c'\n':
            matched += 1
        if line[matched] == c'*' or (line[matched] == c'\n' and matched == size):
            return True
        line = strchr(line, c'\n') + 1
    return False
