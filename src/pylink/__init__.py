"""pylink: an open, embeddable, fast CUDA device linker."""

__version__ = "0.1.0"
