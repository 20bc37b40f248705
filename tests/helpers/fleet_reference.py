"""A naive reference of the contents of an index, and trees for which the answers are known."""

from __future__ import annotations

import os
import struct
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest
from helpers import dedup_cubin
from helpers.archive_builder import gnu
from helpers.fatbin_builder import container, entry, host_object

xxhash = pytest.importorskip("xxhash")

# Types of sections without bytes in the file.
NO_BYTES = (8, 0x70000007, 0x70000009, 0x7000000A, 0x70000015)


@dataclass(frozen=True)
class Section:
    """A section of a cubin; `data` is empty if it has no bytes in the file."""

    number: int
    name: str
    size: int
    data: bytes
    own_bytes: int = 0  # bytes that no earlier section contains

    @property
    def digest(self) -> bytes:
        """The hash of the section's bytes."""
        return bytes(xxhash.xxh3_128_digest(self.data))


def sections(cubin: bytes) -> list[Section]:
    """Return the sections of a cubin, without section 0 and others of type SHT_NULL."""
    at = int.from_bytes(cubin[40:48], "little")
    count, names_at = struct.unpack_from("<HH", cubin, 60)
    headers = [struct.unpack_from("<IIQQQQIIQQ", cubin, at + 64 * i) for i in range(count)]
    names = cubin[headers[names_at][4] :]
    listed_sections = []
    owned = owners(cubin, headers)
    for number, header in enumerate(headers):
        if header[1]:
            name = names[header[0] : names.index(b"\0", header[0])].decode()
            stored = 0 if header[1] in NO_BYTES else header[5]
            data = cubin[header[4] : header[4] + stored]
            listed_sections.append(Section(number, name, header[5], data, owned.count(number)))
    return listed_sections


def owners(cubin: bytes, headers: list[tuple[int, ...]]) -> list[int]:
    """Return, by byte of the file, the first section with it, 0 for headers, -1 for padding."""
    segments, table = struct.unpack_from("<QQ", cubin, 32)
    width, count = struct.unpack_from("<HH", cubin, 54)
    extents = [(0, 0, 64), (segments, 0, width * count), (table, 0, 64 * len(headers))]
    for number, header in enumerate(headers):
        if header[1] and header[1] not in NO_BYTES:
            extents.append((header[4], number, header[5]))
    owned = [-1] * len(cubin)
    for start, number, size in sorted(extents):
        for at in range(start, start + size):
            owned[at] = number if owned[at] < 0 else owned[at]
    return owned


def unit(*functions: str, frame: bytes = b"frame") -> bytes:
    """Return a cubin of sm_100 with these weak functions, whose code depends on their names."""
    rows = [dedup_cubin.Symbol(".debug_frame", 0, 3, dedup_cubin.FRAME)]
    parts = [
        dedup_cubin.Section(dedup_cubin.FRAME, frame),
        dedup_cubin.Section(
            dedup_cubin.FRAME_RELA,
            dedup_cubin.rela(1, 2),
            0x70000082,
            dedup_cubin.SYMTAB,
            dedup_cubin.FRAME,
            8,
        ),
    ]
    for name in functions:
        text = b"code of " + name.encode() + bytes(200)
        capsule = f".nv.capmerc.text.{name}"
        parts += [
            dedup_cubin.Section(f".text.{name}", text, align=128),
            dedup_cubin.Section(capsule, b"\x04\0" + text[:20], 0x70000016, dedup_cubin.SYMTAB),
        ]
        rows.append(dedup_cubin.Symbol(name, 2, 2, capsule))
    return dedup_cubin.Cubin(parts, rows).image()


@dataclass(frozen=True)
class Planted:
    """A tree of files, and the file, member, target and bytes of each cubin in it."""

    root: Path
    cubins: list[tuple[str, str, str, bytes]]

    def repeats(self) -> dict[str, tuple[int, int, int, int]]:
        """Return, by family, number and bytes of sections, then of those that repeat another."""
        return tally(cubin for _, _, _, cubin in self.cubins)


def family(name: str) -> str:
    """Return the part of a section's name before the function's."""
    for stem in (".nv.capmerc.text", ".nv.merc.nv.info", ".nv.info", ".text", ".rela.text"):
        if name.startswith(stem + "."):
            return stem
    return name


def tally(cubins: Iterable[bytes]) -> dict[str, tuple[int, int, int, int]]:
    """Return the sums of `Planted.repeats`, from the contents of all sections."""
    contents: Counter[tuple[str, bytes]] = Counter()
    for cubin in cubins:
        for section in sections(cubin):
            if section.data:
                contents[family(section.name), section.data] += 1
    sums_by_family: dict[str, tuple[int, int, int, int]] = {}
    for (name, data), copies in contents.items():
        sums = sums_by_family.get(name, (0, 0, 0, 0))
        more = (copies, copies * len(data), copies - 1, (copies - 1) * len(data))
        sums_by_family[name] = (
            sums[0] + more[0],
            sums[1] + more[1],
            sums[2] + more[2],
            sums[3] + more[3],
        )
    return sums_by_family


SMOOTH = "_Z6smoothIfET_S0_S0_"
BLEND = ("_Z5blendILi5EEff", "_Z5blendILi3EEff")


def plant(root: Path) -> Planted:
    """Write a tree: two CMake targets, one with a copy of the other's unit, and other files.

    These are an archive, a host object with a compressed entry, and files without device code.
    """
    shared, other = unit(SMOOTH, *BLEND), unit(SMOOTH, "kernel", frame=b"other frame")
    alone, hosted = unit("only"), unit(BLEND[0], frame=b"hosted")
    files = {
        "CMakeFiles/app.dir/a.cubin": shared,
        "CMakeFiles/app.dir/b.cubin": other,
        "lib/CMakeFiles/core.dir/a copy.cubin": shared,
        "lib/libmore.a": gnu([("one.o", alone), ("two.o", shared)]),
        "host/main.o": host_object(
            [("__nv_relfatbin", container(entry(hosted, 100, mode="zstd"), entry(shared, 100)))]
        ),
        "notes.txt": b"no device code",
        "host/plain.o": host_object([(".text", b"host")]),
    }
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    settle()
    return Planted(
        root,
        [
            ("CMakeFiles/app.dir/a.cubin", "", "app", shared),
            ("CMakeFiles/app.dir/b.cubin", "", "app", other),
            ("host/main.o", "", "host", hosted),
            ("host/main.o", "", "host", shared),
            ("lib/CMakeFiles/core.dir/a copy.cubin", "", "lib/core", shared),
            ("lib/libmore.a", "one.o", "lib/libmore.a", alone),
            ("lib/libmore.a", "two.o", "lib/libmore.a", shared),
        ],
    )


def settle() -> None:
    """Wait until files are old enough for their times to be trusted."""
    time.sleep(0.15)


def bytes_of(folder: Path) -> dict[str, bytes]:
    """Return the bytes of all files of an index except its settings, by name."""
    return {
        os.path.relpath(path, folder): path.read_bytes()
        for path in sorted(folder.rglob("*.parquet"))
    }
