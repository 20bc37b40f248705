"""The device-link step of a build: what `nvcc -dlink` makes of objects, in one process.

`container.py` writes fat binaries, `hostobject.py` the object that registers one with the CUDA
runtime. docs/device-link.md is the account of both.
"""
