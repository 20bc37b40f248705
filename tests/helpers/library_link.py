"""A program in place of nvlink, for releases whose nvlink is not on the package index.

    python library_link.py LIBRARY -arch=sm_80 [-g] FILE... [-L FOLDER] [-l NAME] -o OUTPUT

It links with nvJitLink of the release, with the options that this library knows, and prints
nvlink's messages. Exit status `UNKNOWN` means that nvlink's behavior is not known: for an option
that the library does not have, and for errors that do not end the library's link. In 13.0 both
tools write the same bytes except for the tool's own note (18 links on three families), and in 12.4
identical ones (8 links on two). This links all of a library such as cudadevrt, nvlink only the
needed members.
"""

# ruff: noqa: T201 - standard error is the reply
from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from helpers import jitlink_client

UNKNOWN = 64  # an exit status that nvlink does not have
FAILED = 255  # the exit status of nvlink after errors
LIBRARY, ANY = 6, 10  # of nvJitLinkInputType
# Errors that do not end the library's link.
GOES_ON = ("Size doesn't match", "Multiple definition", "Memory space doesn't match")
UNKNOWN_OPTION = "unrecognized option: "


def main(library: str, argv: list[str]) -> int:
    """Link as nvlink would; return the exit status."""
    options, steps, output = understand(argv)
    with tempfile.TemporaryFile() as captured:
        standard_error = os.dup(2)
        os.dup2(captured.fileno(), 2)
        _, results = jitlink_client.ask(ctypes.CDLL(library), (options, [*steps, ("complete",)]))
        os.dup2(standard_error, 2)
        captured.seek(0)
        log = (results["ErrorLog"].rstrip(b"\0") + captured.read()).decode(errors="surrogateescape")
    if log.startswith(UNKNOWN_OPTION):
        print(log, file=sys.stderr)
        return UNKNOWN
    if any(word in log for word in GOES_ON):
        return UNKNOWN
    for line in (results["InfoLog"].rstrip(b"\0").decode() + log).splitlines():
        if not line.startswith("ERROR "):
            print("nvlink", line, file=sys.stderr)
    if not log:
        Path(output).write_bytes(results["LinkedCubin"])
        return 0
    return FAILED


def understand(argv: list[str]) -> tuple[list[str], list[jitlink_client.Step], str]:
    """Return the options of the library, its inputs, and the file to write."""
    options, steps, output, folder = [], [], "a.out", Path()
    words = iter(argv)
    for word in words:
        name, _, value = word.partition("=")
        if word == "-o":
            output = next(words)
        elif name in ("--library-path", "-L"):
            folder = Path(value or next(words))
        elif name in ("--library", "-l"):
            archive = folder / f"lib{value or next(words)}.a"
            steps.append(("data", LIBRARY, archive.read_bytes(), str(archive).encode()))
        elif name in ("--kernels-used", "--variables-used"):
            options += [f"{name[1:]}={part}" for part in value.split(",")]
        elif word.startswith("-"):
            options.append(word)
        else:
            steps.append(("data", ANY, Path(word).read_bytes(), word.encode()))
    return options, steps, output


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1], sys.argv[2:]))
