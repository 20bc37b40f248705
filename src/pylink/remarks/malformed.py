"""What is wrong with a file of remarks."""

from __future__ import annotations


class MalformedRemarks(ValueError):
    """A file that holds no remarks as LLVM writes them; the text names it, the place and why."""
