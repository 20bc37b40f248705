"""The device-link step of a build, like `nvcc -dlink`, in one process.

`container.py` writes fat binaries, `hostobject.py` the object that has a fat binary and registers
it with the CUDA runtime. docs/format-notes/device-link.md describes both.
"""
