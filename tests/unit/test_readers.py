"""Cubins are read in two places: a native header for everybody, and `pylink inspect`.

A reader is what follows e_shoff: it has to check the section table all over again. Five more read
files of the host for what nobody else needs. Those in Python get the number of sections from
`section_counts` of `pylink.facts.elf`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pylink

SOURCES = Path(pylink.__file__).parents[1]
READERS = {"_native/base/elffile.pxd", "pylink/inspect/image.py"}
# What names the fields without reading them: their definition, and the writers of files.
OTHERS = {
    "_native/base/elf64.pxd",
    "_native/image/headers.pxd",
    "pylink/devicelink/objectfile.py",
    "pylink/facts/headers.py",
    "pylink/facts/records.py",
}
# Programs and libraries by their segments, objects to write them anew, cubins among host code, and
# the parts of a library that a link needs, which the native reader then checks.
HOST_READERS = {
    "pylink/audit/linkedfile.py",
    "pylink/fleet/contents.py",
    "pylink/inputs/libraryfile.py",
    "pylink/prune/hostelf.py",
    "pylink/inspect/embedded.py",
}
# Names of the fields, and their places in a header.
FIELDS = re.compile(r"e_sh(?:off|num|strndx)|(?:phoff )shoff|\[40:48\]|, 40\)|, 60\)|EHDR")


def test_there_are_two_readers_of_cubins() -> None:
    found = set()
    for path in SOURCES.rglob("*"):
        if path.suffix in {".py", ".pyx", ".pxd"}:
            code = re.sub(r"#.*", "", path.read_text(encoding="utf-8"))
            if FIELDS.search(code):
                found.add(path.relative_to(SOURCES).as_posix())
    assert found - OTHERS == READERS | HOST_READERS
