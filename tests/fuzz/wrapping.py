"""What the cubins of a job come in: as they are, in an archive, a fat binary or a host object.

The wrapping is damaged, too, in the bytes that are its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from helpers import archive_builder, fatbin_builder

BARE, ARCHIVE, BSD_ARCHIVE, FATBIN, HOST = "bare", "archive", "bsd-archive", "fatbin", "host"
KINDS = (BARE, ARCHIVE, BSD_ARCHIVE, FATBIN, HOST)


def wrap(kind: str, images: Sequence[bytes], arch: str, seed: str) -> list[tuple[str, bytes]]:
    """Names and contents of the files to link; an empty `seed` damages nothing."""
    if kind == BARE:
        return [(f"m{number}.cubin", image) for number, image in enumerate(images)]
    members = [(f"m{number}.o", _object(image, arch)) for number, image in enumerate(images)]
    if kind == HOST:
        files = members
    elif kind == FATBIN:
        files = [(f"m{n}.fatbin", _fatbin(image, arch)) for n, image in enumerate(images)]
    elif kind == ARCHIVE:
        # The first file is what members are taken for.
        files = [members[0], ("lib.a", archive_builder.gnu(members[1:]))]
    else:
        files = [members[0], ("lib.a", archive_builder.bsd(members[1:]))]
    if not seed:
        return files
    rng = Random(seed)
    number = rng.randrange(len(files))
    name, data = files[number]
    files[number] = name, damaged(data, rng)
    return files


def _fatbin(image: bytes, arch: str) -> bytes:
    return fatbin_builder.container(fatbin_builder.entry(image, int(arch.rstrip("af"))))


def _object(image: bytes, arch: str) -> bytes:
    sections = [("__nv_relfatbin", _fatbin(image, arch)), fatbin_builder.SEGMENT]
    return fatbin_builder.host_object(sections)


def damaged(data: bytes, rng: Random) -> bytes:
    """The file with a few bytes changed in front of the first cubin, or behind the last."""
    changed = bytearray(data)
    first = max(data.find(b"\x7fELF", 1), 64)
    last = max(data.rfind(b"\x7fELF"), 0) + 64
    for _ in range(rng.randrange(1, 4)):
        place = rng.randrange(min(first, len(data)))
        if rng.random() < 0.3 and last < len(data):
            place = rng.randrange(last, len(data))
        changed[place] = rng.choice((0, 1, 0xFF, 0x20, 0x2F, 0x39, changed[place] ^ 1))
    if rng.random() < 0.1:
        del changed[rng.randrange(len(changed)) :]
    return bytes(changed)
