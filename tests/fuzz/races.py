"""Links by several threads under the thread sanitizer; `make races` runs it on a build with that.

Each program that is fuzzed is linked by one thread and by each number of THREADS, as cubins and as
an archive of host objects with compressed code, to memory and to a file. The images must be the
same, and the sanitizer must be silent.
"""

# ruff: noqa: T201 - a command that reports to its user
from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from helpers.archive_builder import gnu
from helpers.fatbin_builder import SEGMENT, container, entry, host_object
from helpers.threads import threads

from fuzz import corpus

THREADS = (2, 3, 8)
RACE = 66  # the sanitizer's status of a process with a race
SANITIZER = {"TSAN_OPTIONS": f"exitcode={RACE} report_signal_unsafe=0 history_size=5"}
INSIDE = "--inside"
COMPRESSED = "zstd"


def parser() -> argparse.ArgumentParser:
    """What RACES of `make races` may be."""
    options = argparse.ArgumentParser(prog="fuzz.races", description=__doc__)
    options.add_argument("--sanitized", type=Path, help="the build with the thread sanitizer")
    options.add_argument("--programs", default="", help="only those whose names contain this")
    options.add_argument("--inputs", type=int, default=0, help="also a link of so many copies")
    options.add_argument(INSIDE, action="store_true", help=argparse.SUPPRESS)
    return options


def main() -> int:
    given = parser().parse_args()
    if given.inside:
        return link_all(given.programs, given.inputs)
    environment = dict(os.environ)
    places = list(sys.path)
    if given.sanitized is not None:
        environment |= {**SANITIZER, "LD_PRELOAD": library()}
        places.insert(0, str(given.sanitized.resolve()))
    environment["PYTHONPATH"] = os.pathsep.join(places)
    # The sanitizer needs addresses where it expects them, which a system that shuffles them far
    # does not give it.
    command = ["setarch", "-R", sys.executable, "-m", "fuzz.races", INSIDE]
    command += ["--programs", given.programs, "--inputs", str(given.inputs)]
    code = subprocess.run(command, env=environment, check=False).returncode
    print("races were found" if code == RACE else "failed" if code else "no race")
    return 1 if code else 0


def link_all(chosen: str, inputs: int) -> int:
    """Link all programs by all numbers of threads; 1 where an image depends on that."""
    different = count = 0
    for name in corpus.names():
        if chosen not in name:
            continue
        arch, cubins = corpus.program(name)
        for kind, given in wrapped(arch, cubins):
            count += 1
            if depends_on_threads(given, arch):
                print(f"{name}, {kind}: the image depends on the number of threads")
                different += 1
    if inputs:
        from benchmarks.inputs import cubins as copies  # noqa: PLC0415 - needs the compiler

        for arch in ("90a", "100"):
            folder, names = copies(arch, "15KB", inputs)
            count += 1
            different += depends_on_threads([str(folder / name) for name in names], arch)
    print(f"{count} programs, {different} of them different")
    return 1 if different else 0


def wrapped(arch: str, cubins: tuple[bytes, ...]) -> Iterator[tuple[str, list[bytes]]]:
    """The inputs of a link: cubins, and an archive of host objects."""
    yield "cubins", list(cubins)
    sm = int(arch.rstrip("af"))
    members = []
    for number, cubin in enumerate(cubins):
        sections = [
            ("__nv_relfatbin", container(entry(cubin, sm, mode=COMPRESSED))),
            ("__nv_module_id", b"_%08x_object_cu\0" % number),
            SEGMENT,
        ]
        members.append((f"object_{number}.o", host_object(sections)))
    yield "archive", [gnu(members)]


def depends_on_threads(given: list[str] | list[bytes], arch: str) -> bool:
    """Whether the image is another with some number of threads, in memory or in a file."""
    images = set()
    for count in (1, *THREADS):
        with threads(count):
            images |= set(linked(given, arch))
    return len(images) != 1


def linked(given: list[str] | list[bytes], arch: str) -> Iterator[bytes | str]:
    """The image that is made in memory, and that of a file; for one that failed, the reason."""
    import pylink  # noqa: PLC0415 - of the build that was chosen
    from pylink.files import buffer  # noqa: PLC0415 -- the same

    with tempfile.TemporaryDirectory(prefix="pylink-races-") as folder:
        output = Path(folder) / "out"
        before = buffer.WRITTEN_SIZE
        buffer.WRITTEN_SIZE = 0
        try:
            yield bytes(pylink.link(given, arch=f"sm_{arch}", whole_archive=True).image)
            pylink.link(given, arch=f"sm_{arch}", whole_archive=True, output=output)
            yield output.read_bytes()
        except pylink.LinkError as error:
            yield str(error)
        finally:
            buffer.WRITTEN_SIZE = before


def library() -> str:
    """Where the compiler has the sanitizer, which has to be loaded before Python."""
    asked = ["gcc", "-print-file-name=libtsan.so"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
