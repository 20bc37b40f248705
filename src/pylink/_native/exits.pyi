"""Rewriting the kernels of sm_100 and later as nvlink's finalizer leaves them."""

class MalformedKernel(ValueError):
    """A file breaks its format: name of the section, offset within it, and what is wrong."""

    section: str
    offset: int
    reason: str
    def __init__(self, section: str, offset: int, reason: str) -> None: ...

def rewrite_exits(image: bytes, mode: int) -> bytes:
    """A relocatable cubin whose kernels look as they do in nvlink's output.

    Modes: 0 for an executable without error barriers, 1 for one with error barriers (some input
    has the attribute GEN_ERRBAR_AT_EXIT), 2 for error barriers that stay valid whatever is linked
    in later: every link with ``-g``, also one with ``-r``, and ``-r`` when some input has the
    attribute. Any other link with ``-r`` leaves its kernels alone. 3 is for files from before 13.0,
    whatever the link: all their functions become what 13.0 has, and no exit changes.

    Returns ``image`` itself when nothing changes. Else changed sections lie behind the end of the
    old file; section and symbol indices stay. Raises ``MalformedKernel``, a ``ValueError``.
    """
