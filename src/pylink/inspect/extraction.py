"""Writing the device code in a file to files of its own, each by the name of where it was.

Names come from inputs: only letters, digits and `._+-` stay, nothing is written outside of the
folder, and nothing that is there is overwritten, nor followed if it is a link.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from pylink.facts.objectformats import sm_of_cubin
from pylink.inspect.containers import Part

# How the architecture is written in a name, and how the name ends.
ENDINGS = {"cubin": ("sm", ".cubin"), "PTX": ("compute", ".ptx"), "LTO-IR": ("lto", ".ltoir")}
_UNSAFE = re.compile(r"[^A-Za-z0-9._+-]+")
LONGEST = 100  # characters of a name that come from the input


def extract(parts: Iterable[Part], folder: Path) -> Iterator[tuple[Part, Path]]:
    """Write each part into the folder, which is made; yields the parts with their new files.

    OSError where one cannot be written, FileExistsError where its name is taken.
    """
    folder.mkdir(parents=True, exist_ok=True)
    taken: dict[str, int] = {}
    for part in parts:
        if part.kind not in ENDINGS or not part.data:
            continue
        stem, ending = _names(part)
        count = taken[stem + ending] = taken.get(stem + ending, 0) + 1
        path = folder / (f"{stem}-{count}{ending}" if count > 1 else stem + ending)
        contents = part.data.rstrip(b"\0") if part.kind == "PTX" else part.data
        created = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with open(created, "wb") as file:
            file.write(contents)
        yield part, path


def _names(part: Part) -> tuple[str, str]:
    prefix, ending = ENDINGS[part.kind]
    # Of `folder/lib.a:member.o` the folder says nothing that the user does not know.
    stem = _UNSAFE.sub("_", part.name.rpartition("/")[2]).lstrip(".")[-LONGEST:]
    arch = part.arch or sm_of_cubin(part.data)
    return f"{stem.removesuffix(ending) or 'code'}.{prefix}_{arch}", ending
