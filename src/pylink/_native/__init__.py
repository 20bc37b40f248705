"""Native kernels: loops over bytes, sections, symbols and relocations.

Sources are in ``src/_native``; the ``.pyi`` beside this file is each kernel's contract.
"""
