"""Paths for people: without the directory that all of them begin with."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def shortener(names: Iterable[str]) -> Callable[[str], str]:
    """A function that removes the common directory of `names` from a name; others stay."""
    folders = {os.path.dirname(name) for name in names}
    same_folder = len({os.path.isabs(folder) for folder in folders}) == 1
    common = os.path.commonpath(sorted(folders)) if same_folder else ""
    start = os.path.join(common, "") if common else ""
    return lambda name: name.removeprefix(start) or name
