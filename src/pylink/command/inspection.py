"""`pylink inspect`: show the contents of cubins, or the differences of two."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

from pylink.diagnostics.errors import reason_of
from pylink.diagnostics.stream import printable, show
from pylink.files.reading import read_incoming
from pylink.inputs.filehints import WITHOUT_CODE, find_hidden_code
from pylink.inspect.compare import Ignore, differences
from pylink.inspect.containers import (
    ALL_KINDS,
    ARCHIVE_MAGICS,
    CUBIN_KINDS,
    Allowance,
    UnreadableFile,
    is_known,
)
from pylink.inspect.containers import Part as DeviceCode
from pylink.inspect.containers import parts as parts_of
from pylink.inspect.contents import find_reader
from pylink.inspect.difference import difference_document, difference_text
from pylink.inspect.extraction import extract
from pylink.inspect.image import Image, MalformedCubin
from pylink.inspect.large import MOST_ROWS, row_counts
from pylink.inspect.parts import PARTS, Part, image_document, image_text
from pylink.options.model import Input
from pylink.size.levels import rows as size_rows
from pylink.size.screen import level_table
from pylink.size.walk import measure_bytes
from pylink.terminal.arguments import natural_number
from pylink.terminal.running import WrongArguments, run
from pylink.terminal.tables import json_text

# Exit statuses; without --diff, success is EQUAL.
EQUAL, DIFFERENT, ERROR = 0, 1, 2
# Differences to show for each section without --limit.
DEFAULT_LIMIT = 20
SUMMARY_FUNCTIONS = 10  # rows of each table of bytes in the summary of a large cubin


def _sizes_text(image: Image, top: int = 0) -> str:
    """Return the tables of `pylink size` by part and by function.

    Each has its `top` largest rows (0: all rows), and sums.
    """
    sizes = measure_bytes("cubin", image.data)
    titles = {"part": "Bytes by part", "function": "Bytes by function"}
    return "\n".join(
        "\n".join([title, *(f"  {line}" for line in level_table(sizes, (level,), top)), ""])
        for level, title in titles.items()
    )


def _sizes_value(image: Image) -> object:
    """Return the bytes of each pair of a part and a function of an image, for JSON."""
    rows_of_sizes = size_rows(measure_bytes("cubin", image.data), ("part", "function"))
    return [
        {"part": row.keys[0], "function": row.keys[1], "bytes": row.installed}
        for row in rows_of_sizes
    ]


# This part is shown only on request, and in the summary of a large cubin.
SIZES = Part(
    "sizes", "bytes by part and function, as pylink size counts them", _sizes_text, _sizes_value
)


class UnreadableCubin(Exception):
    """A file cannot be shown; the text names it and says why."""


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(
        prog="pylink inspect",
        description="Show the contents of cubins, relocatable or linked, or how two cubins differ. "
        "Host objects, executables, archives and fat binaries are shown with all their cubins.",
        epilog="Exit status: 0 (equal), 1 (different), 2 (error).",
    )
    options.add_argument("files", nargs="+", metavar="FILE", help="file with cubins")
    options.add_argument("--json", action="store_true", help="print everything as one JSON object")
    options.add_argument(
        "--list",
        action="store_true",
        help="list the contents of the files, including PTX and LTO-IR",
    )
    options.add_argument(
        "--extract",
        metavar="DIR",
        help="write the cubins, PTX and LTO-IR in the files to DIR; overwrites nothing",
    )
    options.add_argument(
        "--arch", metavar="ARCH", help="show only cubins for this architecture, such as sm_90"
    )
    parts = options.add_argument_group(
        f"what to show (default: everything but sizes; of more than {MOST_ROWS:,} rows a summary)"
    )
    parts.add_argument("--all", action="store_true", help="everything, also of large cubins")
    for part in (*PARTS, SIZES):
        parts.add_argument(
            f"--{part.name}", dest="parts", action="append_const", const=part.name, help=part.help
        )
    diff = options.add_argument_group("comparing")
    diff.add_argument("--diff", action="store_true", help="show how the second FILE differs")
    diff.add_argument(
        "--ignore-tool-note",
        action="store_true",
        help="ignore differences in the linker's own note, and in file offsets that its size moves",
    )
    diff.add_argument(
        "--ignore-scoreboards", action="store_true", help="ignore bits 110 to 121 of instructions"
    )
    diff.add_argument(
        "--limit",
        type=natural_number,
        default=DEFAULT_LIMIT,
        metavar="N",
        help=f"differences to show for each section, 0 for all (default: {DEFAULT_LIMIT})",
    )
    return options


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the status is 1 if the cubins differ, 2 after an error message, else 0."""
    return run(parser(), argv, _main, (UnreadableCubin,), error_status=ERROR)


def _main(arguments: argparse.Namespace) -> int:
    if arguments.diff and len(arguments.files) != 2:
        raise WrongArguments("--diff compares two files")
    if arguments.diff and (arguments.parts or arguments.all):
        raise WrongArguments("--diff compares everything")
    if not arguments.diff and (arguments.ignore_tool_note or arguments.ignore_scoreboards):
        raise WrongArguments("--ignore-... needs --diff")
    if arguments.extract is not None and (
        arguments.diff or arguments.list or arguments.json or arguments.parts or arguments.all
    ):
        raise WrongArguments("--extract only writes files")
    if arguments.diff:
        return _diff(arguments)
    if arguments.extract is not None:
        _extract(arguments)
        return EQUAL
    _show(arguments)
    return EQUAL


def _show(arguments: argparse.Namespace) -> None:
    """Print the parts of each cubin that the options select; with --list, what the files hold."""
    selected = _select_parts(arguments)
    texts, documents = [], []
    for name in arguments.files:
        parts = _read_parts(name, arguments.arch)
        if arguments.list:
            if not parts:
                raise UnreadableCubin(f"{name}: there is no device code in it")
            texts += [f"{part}\n" for part in (*parts, *_hints_without_code(name))]
            documents += [{"file": part.name, "kind": part.kind, "sm": part.arch} for part in parts]
            continue
        for label, image in _read_images(name, parts):
            try:
                if arguments.json:
                    documents.append(image_document(label, image, selected))
                elif (rows := _rows_of_large(arguments, image)) is not None:
                    texts.append(_summary(label, image, rows))
                else:
                    texts.append(image_text(label, image, selected))
            except MalformedCubin as problem:
                raise UnreadableCubin(f"{label}: {problem}") from problem
    if arguments.json:
        value = documents[0] if len(documents) == 1 else documents
        show(json_text(value))
    else:
        show(("" if arguments.list else "\n").join(texts))


def _select_parts(arguments: argparse.Namespace) -> list[Part]:
    """Return the parts of a cubin that options ask for; without such an option, all but sizes."""
    names = arguments.parts or ()
    if arguments.all:
        return [*PARTS, SIZES]
    return [part for part in (*PARTS, SIZES) if part.name in names] or list(PARTS)


def _rows_of_large(arguments: argparse.Namespace, image: Image) -> dict[str, int] | None:
    """Return the approximate rows by part of a cubin that is too large to be shown whole.

    Only parts that can be long are in the result (see `row_counts`). It is None for a smaller
    cubin, and if options select parts or everything.
    """
    if arguments.parts or arguments.all:
        return None
    counts = row_counts(image)
    return counts if sum(counts.values()) > MOST_ROWS else None


def _summary(label: str, image: Image, rows: dict[str, int]) -> str:
    """Return the summary of a large cubin: header, sizes, and the options that show other parts.

    `rows` has the approximate number of rows by the name of a part.
    """
    header, _, _ = PARTS[0].text(image).partition("\nSegments")
    parts = ", ".join(f"--{name} {count:,}" for name, count in rows.items() if count)
    not_shown = (
        f"Not shown: about {sum(rows.values()):,} rows. Choose parts ({parts} rows), or show "
        "everything with --all."
    )
    return "\n".join(
        [f"{printable(label)}\n", header, _sizes_text(image, SUMMARY_FUNCTIONS), f"{not_shown}\n"]
    )


def _diff(arguments: argparse.Namespace) -> int:
    """Print how two cubins differ; return EQUAL or DIFFERENT.

    UnreadableCubin if a file does not hold exactly one cubin, or has one that cannot be decoded.
    """
    images = []
    for name in arguments.files:
        images_here = _read_images(name, _read_parts(name, arguments.arch))
        if len(images_here) != 1:
            hint = "choose one with --arch, or name an object"
            raise UnreadableCubin(f"{name}: holds {len(images_here)} cubins; {hint}")
        images.append(images_here[0][1])
    first, second = images
    for name, image in zip(arguments.files, (first, second), strict=True):
        _decode_all(name, image)
    ignore = Ignore(arguments.ignore_tool_note, arguments.ignore_scoreboards)
    changes = differences(first, second, ignore)
    if arguments.json:
        value = difference_document(arguments.files, changes)
        show(json_text(value))
    elif changes:
        show(difference_text(arguments.files, changes, arguments.limit))
    return DIFFERENT if changes else EQUAL


def _extract(arguments: argparse.Namespace) -> None:
    """Write the device code of the files to new files, and print a line for each."""
    parts = [
        part for name in arguments.files for part in _read_parts(name, arguments.arch, ALL_KINDS)
    ]
    if not parts:
        raise UnreadableCubin(f"{arguments.files[0]}: there is no device code in it")
    try:
        for part, path in extract(parts, Path(arguments.extract)):
            show(f"{path}: {part}\n")
    except OSError as problem:
        raise UnreadableCubin(f"{problem.filename}: {reason_of(problem)}") from problem


def _read_parts(
    name: str, arch: str | None, unpacks: tuple[int, ...] = CUBIN_KINDS
) -> list[DeviceCode]:
    """Return the device code in a file; with `arch` only that of one architecture.

    `unpacks` are the kinds of device code whose bytes are needed. UnreadableCubin if the file
    cannot be read or unpacked, or if `_hints_without_code` has a message on it.
    """
    try:
        data = read_incoming(name, is_wanted=is_known)
        hidden = _hints_without_code(name, data)
        if hidden and not data.startswith(ARCHIVE_MAGICS):
            raise UnreadableCubin(hidden[0])
        parts = list(parts_of(name, data, 0, Allowance(unpacks=unpacks)))
    except OSError as problem:
        raise UnreadableCubin(f"{name}: {reason_of(problem)}") from problem
    except UnreadableFile as problem:
        raise UnreadableCubin(str(problem)) from problem
    if hidden and not parts:
        raise UnreadableCubin("\n".join(hidden))
    if arch is not None:
        number = re.sub(r"\D", "", arch)
        parts = [part for part in parts if str(part.arch or _read_image(part).sm) == number]
    return parts


def _hints_without_code(name: str, data: bytes | None = None) -> list[str]:
    """Return messages about a file, or members of an archive, whose device code cannot be read.

    Such a file is not an object, or the host's link-time optimization hides its device code.
    `data` are the contents of the file; if it is None, the file is read.
    """
    hints = find_hidden_code([Input(name, data)])
    return [hint.message for hint in hints if hint.kind in WITHOUT_CODE]


def _read_images(name: str, parts: list[DeviceCode]) -> list[tuple[str, Image]]:
    """Return the names and images of the cubins in `parts`; UnreadableCubin without one.

    The name of a cubin from a fat binary contains its architecture. `name` is the file's.
    """
    cubins = [(part, _read_image(part)) for part in parts if part.kind == "cubin"]
    if not cubins:
        raise UnreadableCubin(f"{name}: there is no cubin in it")
    return [
        (cubin.name if cubin.arch == 0 else f"{cubin.name} (sm_{cubin.arch})", image)
        for cubin, image in cubins
    ]


def _read_image(part: DeviceCode) -> Image:
    """Return the image of a piece of device code; `UnreadableCubin` if it is malformed."""
    try:
        return Image(part.data)
    except MalformedCubin as problem:
        raise UnreadableCubin(f"{part.name}: {problem}") from problem


def _decode_all(name: str, image: Image) -> None:
    """Decode all sections once, so that a comparison cannot fail later.

    UnreadableCubin if a section is malformed.
    """
    for section in image.sections:
        read = find_reader(section)
        try:
            if read is not None:
                read(image, section)
        except MalformedCubin as problem:
            raise UnreadableCubin(f"{name}: {problem}") from problem
