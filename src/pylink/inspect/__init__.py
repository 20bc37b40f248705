"""What is in a cubin, in words, and how two cubins differ.

`pylink inspect` is the command; `image.Image` reads a cubin, `contents.rows` decodes a section,
`compare.differences` says in the same words what is unequal. The reader is independent of the
linker's own and made for looking, not for speed.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run `pylink inspect` and return its exit status."""
    from pylink.inspect.command import run  # noqa: PLC0415 - readers of images need no argparse

    return run(argv)
