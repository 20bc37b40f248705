"""The compilers that a link may start: ptxas for PTX, and nvJitLink, in a process of its own.

Imported only when a link has PTX or LTO-IR. docs/compilers.md describes their behavior.
"""
