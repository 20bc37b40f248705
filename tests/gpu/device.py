"""One GPU through the driver: load an image, run its kernels, read back what they wrote."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

try:
    from cuda.bindings import driver
except ImportError:  # the reason is given by why_not
    driver = None

# What a kernel argument is passed as.
POINTER = ctypes.c_void_p
INT = ctypes.c_int
FLOAT = ctypes.c_float


def why_not() -> str | None:
    """Why kernels cannot run here, None when they can."""
    if driver is None:
        return "no GPU test ran: cuda-bindings is not installed (pip install '.[gpu]')"
    try:
        status, *_ = driver.cuInit(0)
        if int(status) == 0:
            status, count = driver.cuDeviceGetCount()
            if int(status) == 0 and count:
                return None
    except RuntimeError as error:
        return f"no GPU test ran: there is no NVIDIA driver on this machine ({error})"
    return f"no GPU test ran: the driver finds no GPU ({status!r})"


needs_gpu = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")


def check(result: tuple[Any, ...]) -> Any:
    """What a driver call returned; AssertionError when it failed."""
    status, *values = result
    assert int(status) == 0, f"the driver answers {status!r}"
    return values[0] if values else None


class Gpu:
    """The first GPU with its primary context current in this thread."""

    def __init__(self) -> None:
        check(driver.cuInit(0))
        self.device = check(driver.cuDeviceGet(0))
        check(driver.cuCtxSetCurrent(check(driver.cuDevicePrimaryCtxRetain(self.device))))
        attribute = driver.CUdevice_attribute
        self.major, self.minor = (
            int(check(driver.cuDeviceGetAttribute(attribute_number, self.device)))
            for attribute_number in (
                attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
            )
        )

    def runs(self, arch: str) -> bool:
        """Whether code for sm_<arch> runs here."""
        number = int(arch.rstrip("af"))
        major, minor = divmod(number, 10)
        if arch.endswith("a"):
            return (major, minor) == (self.major, self.minor)
        return major == self.major and minor <= self.minor

    def load(self, image: bytes) -> Any:
        """The module of an executable image."""
        return check(driver.cuModuleLoadData(image))

    def unload(self, module: Any) -> None:
        check(driver.cuModuleUnload(module))

    def allocate(self, content: bytes) -> Any:
        """Device memory with this content."""
        memory = check(driver.cuMemAlloc(len(content)))
        check(driver.cuMemcpyHtoD(memory, content, len(content)))
        return memory

    def read(self, memory: Any, size: int) -> bytes:
        content = bytearray(size)
        check(driver.cuMemcpyDtoH(content, memory, size))
        return bytes(content)

    def free(self, memory: Any) -> None:
        check(driver.cuMemFree(memory))

    def launch(
        self,
        module: Any,
        kernel: str,
        arguments: tuple[tuple[Any, Any], ...],
        *,
        blocks: int = 1,
        threads: int = 32,
        shared: int = 0,
    ) -> None:
        """Run a kernel to its end; `arguments` are pairs of a value and its ctypes type."""
        function = check(driver.cuModuleGetFunction(module, kernel.encode()))
        values = tuple(int(value) if kind is POINTER else value for value, kind in arguments)
        kinds = tuple(kind for _, kind in arguments)
        check(
            driver.cuLaunchKernel(
                function, blocks, 1, 1, threads, 1, 1, shared, 0, (values, kinds), 0
            )
        )
        check(driver.cuCtxSynchronize())
