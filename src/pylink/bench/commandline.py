"""The link that somebody named: its words, taken apart so that parts of it can be linked as well.

The words stay as they were given, in their order, except for what names a file to write: that lies
in the folder of the measurement. Options files are read here and their words stand in their place.
Relative names mean what they mean where the command runs.
"""

from __future__ import annotations

import hashlib
import os
import stat
from copy import copy
from itertools import accumulate

from pylink.api.inputs import HEAD_SIZE
from pylink.diagnostics import Sink
from pylink.diagnostics.errors import LinkError, reason_of
from pylink.files.reading import read_incoming
from pylink.inputs.kinds import ARCHIVE, CUBIN, THIN_ARCHIVE, kind_of
from pylink.options.file import split_words
from pylink.options.parse import CommandLine, parse, read_word
from pylink.options.table import BY_ATTRIBUTE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from fractions import Fraction

    from pylink.options.table import Value

ARCHIVES = (ARCHIVE, THIN_ARCHIVE)

# Programs whose command line is a link's; their name in front of it is none of its words.
LINKERS = ("nvlink", "pylink")

# The name of the output in the folder of the measurement.
OUTPUT = "linked"

# A system takes no word longer than this, and programs not much more in all.
LONGEST = 1 << 17


class BadLink(Exception):
    """A command line that cannot be measured; the text says why."""


class Link:
    """A link that runs again and again.

    `arch` is its target, `inputs` pairs of file name and whether all members of an archive there
    are linked, `values` its options by attribute without those that name files to write.
    `kinds` are what each input is, as `pylink.inputs.kinds` has them, and `libraries` the files
    that its -l stand for. `linker` is the program that was named in front, None without one;
    `output` the name that it would write.
    """

    def __init__(self, argv: Sequence[str], folder: str) -> None:
        """Take a command line apart; `folder` is for what links write. Raises BadLink."""
        self.folder = folder
        self.linker: str | None = None
        rest = list(argv)
        if rest and os.path.basename(rest[0]) in LINKERS:
            self.linker = rest.pop(0)
        if rest and rest[0] == "link":
            del rest[0]
        try:
            given = list(_expanded(rest))
        except OSError as error:
            raise BadLink(f"{error.filename}: {reason_of(error)}") from None
        line = _parsed(given)
        if not isinstance(line.values.get("arch"), str):
            raise BadLink("the link has no -arch")
        self.arch = str(line.values["arch"])
        self.output = str(line.values.get("output_file") or "")
        self.values: dict[str, Value] = {
            name: value
            for name, value in line.values.items()
            if not BY_ATTRIBUTE[name].writes and name not in ("arch", "options_file")
        }
        self.inputs = list(zip(line.inputs, line.whole, strict=True))
        if not self.inputs:
            raise BadLink("the link has no inputs")
        self.kinds = [_kind(name) for name in line.inputs]
        self.libraries = _libraries(line)
        # The inputs that parts are made of as parts take them, and how many each part may have.
        self._order = [place for place, kind in enumerate(self.kinds) if kind not in ARCHIVES]
        self._ends: list[int] = []
        self._pieces = list(_pieces(given))

    @property
    def folds(self) -> bool:
        """Whether pylink may leave copies of Mercury sections out, as nvlink does not."""
        return "merc_dedup" not in self.values

    def without_folding(self) -> Link:
        """The same link with everything that nvlink keeps."""
        link = copy(self)
        link.values = {**self.values, "merc_dedup": "off"}
        link._pieces = [(None, ["--merc-dedup=off"]), *self._pieces]
        return link

    @property
    def size(self) -> int:
        """How many inputs parts are made of: all but archives, which every part needs."""
        return len(self._order)

    @property
    def output_path(self) -> str:
        return os.path.join(self.folder, OUTPUT)

    def part(self, size: int) -> list[int]:
        """The places in `inputs` of a part: so many inputs, and all archives."""
        taken = set(self._order[:size])
        return [
            place for place, kind in enumerate(self.kinds) if kind in ARCHIVES or place in taken
        ]

    def sizes(self, shares: Sequence[Fraction]) -> dict[Fraction, int]:
        """How many inputs the parts have; none where two would have the same."""
        ends = self._ends or range(1, self.size + 1)
        sizes = {
            share: min(ends, key=lambda end: abs(end - int(self.size * share))) for share in shares
        }
        return sizes if len({*sizes.values(), self.size}) > len(sizes) else {}

    def regroup(self) -> bool:
        """Make parts of inputs that need one another; False where there is no other way."""
        if self._ends or any(self.kinds[place] != CUBIN for place in self._order):
            return False
        from pylink.bench.groups import groups_of  # where the first do not link

        contents = []
        for place in self._order:
            with open(self.inputs[place][0], "rb") as stream:
                contents.append(stream.read())
        groups = groups_of(contents)
        self._ends = list(accumulate(map(len, groups)))
        self._order = [self._order[number] for group in groups for number in group]
        return True

    def bytes_of(self, size: int) -> int:
        """Bytes of the inputs of a part, libraries included."""
        names = [self.inputs[place][0] for place in self.part(size)] + self.libraries
        return sum(os.stat(name).st_size for name in names)

    def digest(self) -> str:
        """A digest of the bytes of all inputs, in order."""
        digest = hashlib.sha256()
        for name in [*(name for name, _ in self.inputs), *self.libraries]:
            with open(name, "rb") as stream:
                data = stream.read()
            digest.update(b"%d\0" % len(data) + data)
        return digest.hexdigest()[:16]

    def words(self, size: int) -> list[str]:
        """The words that link a part of so many inputs; many of them stand in an options file."""
        part = set(self.part(size))
        argv: list[str] = []
        for place, piece in self._pieces:
            if place is None or place in part:
                argv += piece
        argv = [word.replace(_FOLDER, self.folder) for word in argv]
        argv += ["-o", self.output_path]
        if sum(map(len, argv)) < LONGEST:
            return argv
        path = os.path.join(self.folder, f"options-{size}")
        with open(path, "w", encoding="utf-8", errors="surrogateescape") as stream:
            stream.write("\n".join(map(_quoted, argv)))
        return ["--options-file", path]


# Stands for the folder of the measurement until a command is made.
_FOLDER = "\0folder\0"


def _expanded(argv: Sequence[str], depth: int = 0) -> Iterator[str]:
    """The words with those of options files in the place of what names these."""
    position = 0
    while position < len(argv):
        line, begun = CommandLine(), position
        try:
            position = read_word(argv, position, line, Sink(), (), lenient=True)
        except LinkError:
            position += 1  # a mistake, which the parse of all words reports
        files = _files_of(argv[begun:position], line)
        if not files or depth == 15:  # as deep as nvlink goes
            yield from argv[begun:position]
        for file in files if depth < 15 else ():
            text = os.fsdecode(read_incoming(file))
            yield from _expanded(split_words(text, Sink()), depth + 1)


def _files_of(argv: Sequence[str], line: CommandLine) -> Sequence[str]:
    """The options files that these words name, without those that these name in turn."""
    if argv[0][:1] == "@":
        return line.files[:1]
    return line.lists.get("options_file", [])


def _parsed(argv: Sequence[str]) -> CommandLine:
    """What the words say; BadLink with the first mistake."""
    try:
        return parse(argv, Sink())
    except LinkError as error:
        raise BadLink(str(error)) from None


def _pieces(argv: Sequence[str]) -> Iterator[tuple[int | None, list[str]]]:
    """Options with their arguments, and inputs with their numbers, in order.

    What is written goes to `_FOLDER`; the output comes last, when a command is made.
    """
    position = inputs = 0
    while position < len(argv):
        line, begun = CommandLine(), position
        position = read_word(argv, position, line, Sink(), (), lenient=True)
        piece = list(argv[begun:position])
        if line.inputs:
            yield inputs, piece
            inputs += 1
            continue
        written = [name for name in line.values if BY_ATTRIBUTE[name].writes]
        if not written:
            yield None, piece
        elif written != ["output_file"]:
            option = BY_ATTRIBUTE[written[0]]
            yield None, [f"--{option.long}", os.path.join(_FOLDER, option.attribute)]


def _kind(name: str) -> int:
    """What an input is by its first bytes; BadLink for what cannot be read twice."""
    try:
        status = os.stat(name)
        if not stat.S_ISREG(status.st_mode):
            raise BadLink(f"{name}: not a regular file, so it cannot be linked twice")
        with open(name, "rb") as stream:
            head = stream.read(HEAD_SIZE)
    except OSError as error:
        raise BadLink(f"{name}: {reason_of(error)}") from None
    return kind_of(head)


def _libraries(line: CommandLine) -> list[str]:
    """The files that -l stands for, as far as they are there."""
    from pylink.inputs.libraries import searched
    from pylink.options.model import Options

    options = Options(line.values)
    paths = (searched(name, options) for name in options.library)
    return [files[-1] for files in paths if files]


def _quoted(word: str) -> str:
    """A word as an options file has it; BadLink for one that it cannot have."""
    if '"' in word:
        raise BadLink(f"{word}: a link of so many words needs an options file, which has no quotes")
    escaped = word.replace("\\", "\\\\")
    return f'"{escaped}"' if any(mark in word for mark in " \t\r\n") or not word else escaped
