"""`pylink inspect`: show what is in cubins, or how two of them differ."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence

from pylink.command.running import run
from pylink.diagnostics.stream import show
from pylink.inputs.incoming import read_incoming
from pylink.inspect.compare import Ignore, differences
from pylink.inspect.containers import Part as Held
from pylink.inspect.containers import UnreadableFile, is_known
from pylink.inspect.containers import parts as parts_of
from pylink.inspect.contents import reader
from pylink.inspect.difference import difference_document, difference_text
from pylink.inspect.image import Image, MalformedCubin
from pylink.inspect.parts import PARTS, image_document, image_text

EQUAL, DIFFERENT, TROUBLE = 0, 1, 2
SHOWN = 20


class UnreadableCubin(Exception):
    """A file that cannot be shown; the text names it and says why."""


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(
        prog="pylink inspect",
        description="Show what is in cubins, relocatable or linked, or how two cubins differ. Host "
        "objects, executables, archives and fat binaries are shown with every cubin in them.",
        epilog="Exit status: 0, or 0 for equal and 1 for different cubins, 2 for trouble.",
    )
    options.add_argument("files", nargs="+", metavar="FILE", help="file with cubins")
    options.add_argument("--json", action="store_true", help="everything as one JSON object")
    options.add_argument(
        "--list", action="store_true", help="name what is in the files, PTX and LTO-IR as well"
    )
    options.add_argument(
        "--arch", metavar="ARCH", help="cubins for this architecture alone, such as sm_90"
    )
    parts = options.add_argument_group("what to show (default: everything)")
    for part in PARTS:
        parts.add_argument(
            f"--{part.name}",
            dest="parts",
            action="append_const",
            const=part.name,
            help=part.help,
        )
    diff = options.add_argument_group("comparing")
    diff.add_argument("--diff", action="store_true", help="say how the second FILE differs")
    diff.add_argument(
        "--ignore-tool-note",
        action="store_true",
        help="the linker's own note may differ, and the file offsets that its size moves",
    )
    diff.add_argument(
        "--ignore-scoreboards",
        action="store_true",
        help="bits 110 to 121 of the instructions may differ",
    )
    diff.add_argument(
        "--limit",
        type=int,
        default=SHOWN,
        metavar="N",
        help=f"differences shown of one section; 0 for all (default {SHOWN})",
    )
    return options


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command: 0, 1 when the cubins differ, 2 after a message on what is wrong."""
    options = parser()

    def work(arguments: argparse.Namespace) -> int:
        if arguments.diff and len(arguments.files) != 2:
            options.error("--diff compares two files")
        if arguments.diff and arguments.parts:
            options.error("--diff compares everything")
        if not arguments.diff and (arguments.ignore_tool_note or arguments.ignore_scoreboards):
            options.error("--ignore-... needs --diff")
        if arguments.diff:
            return _diff(arguments)
        _show(arguments)
        return EQUAL

    return run(options, argv, work, (UnreadableCubin,), trouble=TROUBLE)


def _show(arguments: argparse.Namespace) -> None:
    chosen = [part for part in PARTS if not arguments.parts or part.name in arguments.parts]
    texts, documents = [], []
    for name in arguments.files:
        held = _held(name, arguments.arch)
        if arguments.list:
            texts += [f"{one}\n" for one in held]
            documents += [{"file": one.name, "kind": one.kind, "sm": one.arch} for one in held]
            continue
        for label, image in _images(name, held):
            try:
                if arguments.json:
                    documents.append(image_document(label, image, chosen))
                else:
                    texts.append(image_text(label, image, chosen))
            except MalformedCubin as problem:
                raise UnreadableCubin(f"{label}: {problem}") from problem
    if arguments.json:
        value = documents[0] if len(documents) == 1 else documents
        show(json.dumps(value, indent=1) + "\n")
    else:
        show(("" if arguments.list else "\n").join(texts))


def _diff(arguments: argparse.Namespace) -> int:
    images = []
    for name in arguments.files:
        found = _images(name, _held(name, arguments.arch))
        if len(found) != 1:
            hint = "choose one with --arch, or name an object"
            raise UnreadableCubin(f"{name}: holds {len(found)} cubins; {hint}")
        images.append(found[0][1])
    first, second = images
    for name, image in zip(arguments.files, (first, second), strict=True):
        _check(name, image)
    ignore = Ignore(arguments.ignore_tool_note, arguments.ignore_scoreboards)
    found_differences = differences(first, second, ignore)
    if arguments.json:
        value = difference_document(arguments.files, found_differences)
        show(json.dumps(value, indent=1) + "\n")
    elif found_differences:
        show(difference_text(arguments.files, found_differences, arguments.limit))
    return DIFFERENT if found_differences else EQUAL


def _held(name: str, arch: str | None) -> list[Held]:
    """The device code in a file, of one architecture if that is asked for."""
    try:
        found = list(parts_of(name, read_incoming(name, wanted=is_known)))
    except OSError as problem:
        raise UnreadableCubin(f"{name}: {problem.strerror}") from problem
    except UnreadableFile as problem:
        raise UnreadableCubin(str(problem)) from problem
    if arch is not None:
        number = re.sub(r"\D", "", arch)
        found = [one for one in found if str(one.arch or _read(one).sm) == number]
    return found


def _images(name: str, held: list[Held]) -> list[tuple[str, Image]]:
    """The cubins among it, each with a name: that of the file where there is nothing else."""
    cubins = [(one, _read(one)) for one in held if one.kind == "cubin"]
    if not cubins:
        raise UnreadableCubin(f"{name}: there is no cubin in it")
    return [
        (one.name if one.arch == 0 else f"{one.name} (sm_{one.arch})", image)
        for one, image in cubins
    ]


def _read(one: Held) -> Image:
    try:
        return Image(one.data)
    except MalformedCubin as problem:
        raise UnreadableCubin(f"{one.name}: {problem}") from problem


def _check(name: str, image: Image) -> None:
    """Decode everything once, so that a comparison cannot meet what is unreadable."""
    for section in image.sections:
        read = reader(section)
        try:
            if read is not None:
                read(image, section)
        except MalformedCubin as problem:
            raise UnreadableCubin(f"{name}: {problem}") from problem
