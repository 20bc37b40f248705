"""Paths for people: without the directory that all of them begin with."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def shortener(names: Iterable[str]) -> Callable[[str], str]:
    """Return a function that removes the common directory of `names` from a name.

    A name outside of that directory stays as it is. No name is shortened if `names` has absolute
    and relative ones.
    """
    directories = {os.path.dirname(name) for name in names}
    is_comparable = len({os.path.isabs(directory) for directory in directories}) == 1
    common = os.path.commonpath(sorted(directories)) if is_comparable else ""
    start = os.path.join(common, "") if common not in ("", os.sep) else ""
    return lambda name: name.removeprefix(start) or name
