"""The link to measure: its command line, split so that parts of the inputs can be linked, too.

Arguments stay unchanged and in order, except for files to write, which are put into the directory
of the measurement. Options files are replaced by the arguments in them. Relative names are relative
to the working directory.
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
from pylink.facts.inputkinds import ARCHIVE, CUBIN, THIN_ARCHIVE
from pylink.files.reading import read_incoming
from pylink.inputs.kinds import kind_of
from pylink.options.file import split_arguments
from pylink.options.parse import CommandLine, parse, read_argument
from pylink.options.table import BY_ATTRIBUTE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from fractions import Fraction

    from pylink.options.table import Value

ARCHIVES = (ARCHIVE, THIN_ARCHIVE)

# Programs whose command line may be given; their name in front of it is removed.
LINKERS = ("nvlink", "pylink")

# The name of the output in the directory of the measurement.
OUTPUT = "linked"

# Arguments of this many characters in all, or more, are put into an options file. The limit is the
# largest size in bytes of one argument in Linux.
MAX_ARGUMENTS_SIZE = 1 << 17

# Options files may name further ones; nvlink follows them to this depth. The names of deeper ones
# stay in the command line.
MAX_DEPTH = 15


class BadLink(Exception):
    """A command line that cannot be measured; the text says why."""


class Link:
    """A link that can run repeatedly.

    * `arch`: the target.
    * `inputs`: pairs of file name and whether all members of an archive are linked.
    * `values`: options by attribute, without `arch`, options files and files to write.
    * `kinds`: the kind of each input, from `pylink.inputs.kinds`.
    * `libraries`: the files of -l.
    * `linker`: the program at the start of the command line, or None.
    * `output`: the output file that the command line names, or empty.
    """

    def __init__(self, argv: Sequence[str], directory: str) -> None:
        """Split a command line; `directory` is the directory for outputs. Raises BadLink."""
        self.directory = directory
        self.linker: str | None = None
        remaining = list(argv)
        if remaining and os.path.basename(remaining[0]) in LINKERS:
            self.linker = remaining.pop(0)
        if remaining and remaining[0] == "link":
            del remaining[0]
        try:
            expanded = list(_expand_options_files(remaining))
        except OSError as error:
            raise BadLink(f"{error.filename}: {reason_of(error)}") from None
        line = _parse(expanded)
        if not isinstance(line.values.get("arch"), str):
            raise BadLink("the link has no -arch")
        self.arch = str(line.values["arch"])
        self.output = str(line.values.get("output_file") or "")
        self.values: dict[str, Value] = {
            name: value
            for name, value in line.values.items()
            if not BY_ATTRIBUTE[name].writes and name not in ("arch", "options_file")
        }
        self.inputs = list(zip(line.inputs, line.whole_inputs, strict=True))
        if not self.inputs:
            raise BadLink("the link has no inputs")
        self.kinds = [_read_kind(name) for name in line.inputs]
        self.libraries = _libraries(line)
        # Indices of the inputs that are not archives; the first n are the part with n inputs.
        self._part_order = [index for index, kind in enumerate(self.kinds) if kind not in ARCHIVES]
        # Possible numbers of inputs in a part after `regroup`; empty before it: all are possible.
        self._group_ends: list[int] = []
        # The command line as pairs: index of an input, or None for an option, and its arguments.
        self._arguments = list(_split_by_input(expanded))

    @property
    def folds(self) -> bool:
        """True if no --merc-dedup is given: pylink then omits repeated Mercury sections."""
        return "merc_dedup" not in self.values

    def without_folding(self) -> Link:
        """Return this link with --merc-dedup=off: all Mercury sections stay, as with nvlink."""
        link = copy(self)
        link.values = {**self.values, "merc_dedup": "off"}
        link._arguments = [(None, ["--merc-dedup=off"]), *self._arguments]
        return link

    @property
    def size(self) -> int:
        """The number of inputs except archives; a part has some of these, and all archives."""
        return len(self._part_order)

    @property
    def output_path(self) -> str:
        """The file that each contender (a linker, or the copy of all inputs) writes."""
        return os.path.join(self.directory, OUTPUT)

    def part(self, size: int) -> list[int]:
        """Return the indices in `inputs` of the part with `size` inputs, and of all archives."""
        chosen = set(self._part_order[:size])
        return [
            index for index, kind in enumerate(self.kinds) if kind in ARCHIVES or index in chosen
        ]

    def sizes(self, shares: Sequence[Fraction]) -> dict[Fraction, int]:
        """Map each share of the inputs, such as 1/4, to the number of inputs of its part.

        The result is empty if two parts would be equal, or one would have all inputs.
        """
        ends = self._group_ends or range(1, self.size + 1)
        sizes = {
            share: min(ends, key=lambda end: abs(end - int(self.size * share))) for share in shares
        }
        return sizes if len({*sizes.values(), self.size}) > len(sizes) else {}

    def regroup(self) -> bool:
        """Sort the inputs by groups whose members need one another; then parts have whole groups.

        Return False if that was done before, or if an input is neither a cubin nor an archive.
        """
        if self._group_ends or any(self.kinds[index] != CUBIN for index in self._part_order):
            return False
        from pylink.bench.groups import groups_of  # rarely needed

        contents = []
        for index in self._part_order:
            with open(self.inputs[index][0], "rb") as stream:
                contents.append(stream.read())
        groups = groups_of(contents)
        self._group_ends = list(accumulate(map(len, groups)))
        self._part_order = [self._part_order[number] for group in groups for number in group]
        return True

    def bytes_of(self, size: int) -> int:
        """Return the total bytes of a part with `size` inputs, all archives, and all libraries."""
        names = [self.inputs[index][0] for index in self.part(size)] + self.libraries
        return sum(os.stat(name).st_size for name in names)

    def digest(self) -> str:
        """Return a digest of the bytes of all inputs and libraries, in order."""
        digest = hashlib.sha256()
        for name in [*(name for name, _ in self.inputs), *self.libraries]:
            with open(name, "rb") as stream:
                data = stream.read()
            digest.update(b"%d\0" % len(data) + data)
        return digest.hexdigest()[:16]

    def arguments_for(self, size: int) -> list[str]:
        """Return the arguments that link `size` inputs.

        If they are too long, they are written to an options file, and the result names that file.
        """
        part = set(self.part(size))
        argv: list[str] = []
        for index, piece in self._arguments:
            if index is None or index in part:
                argv += piece
        argv = [argument.replace(_DIRECTORY, self.directory) for argument in argv]
        argv += ["-o", self.output_path]
        if sum(map(len, argv)) < MAX_ARGUMENTS_SIZE:
            return argv
        path = os.path.join(self.directory, f"options-{size}")
        with open(path, "w", encoding="utf-8", errors="surrogateescape") as stream:
            stream.write("\n".join(map(_quote, argv)))
        return ["--options-file", path]


# Placeholder for the directory of the measurement, replaced by `Link.arguments_for`.
_DIRECTORY = "\0folder\0"


def _expand_options_files(argv: Sequence[str], depth: int = 0) -> Iterator[str]:
    """Yield the arguments, with options files replaced by the arguments in them.

    `depth` is the number of options files around these arguments.
    """
    position = 0
    while position < len(argv):
        line, start = CommandLine(), position
        try:
            position = read_argument(argv, position, line, Sink(), (), lenient=True)
        except LinkError:
            position += 1  # `_parse` reports this error
        files = _files_of(argv[start:position], line)
        if not files or depth == MAX_DEPTH:
            yield from argv[start:position]
        for file in files if depth < MAX_DEPTH else ():
            text = os.fsdecode(read_incoming(file))
            yield from _expand_options_files(split_arguments(text, Sink()), depth + 1)


def _files_of(argv: Sequence[str], line: CommandLine) -> Sequence[str]:
    """Return the options files that one argument names, without those that these files name.

    `argv` is the argument with its value, and `line` what it was parsed into.
    """
    if argv[0][:1] == "@":
        return line.files[:1]
    return line.lists.get("options_file", [])


def _parse(argv: Sequence[str]) -> CommandLine:
    """Parse the arguments; BadLink for the first error."""
    try:
        return parse(argv, Sink())
    except LinkError as error:
        raise BadLink(str(error)) from None


def _split_by_input(argv: Sequence[str]) -> Iterator[tuple[int | None, list[str]]]:
    """Yield the index of an input, or None for an option, and its arguments, in order.

    Files to write are put into `_DIRECTORY`. The option of the output is omitted, because
    `Link.arguments_for` adds it.
    """
    position = inputs = 0
    while position < len(argv):
        line, start = CommandLine(), position
        position = read_argument(argv, position, line, Sink(), (), lenient=True)
        piece = list(argv[start:position])
        if line.inputs:
            yield inputs, piece
            inputs += 1
            continue
        written = [name for name in line.values if BY_ATTRIBUTE[name].writes]
        if not written:
            yield None, piece
        elif written != ["output_file"]:
            option = BY_ATTRIBUTE[written[0]]
            yield None, [f"--{option.long}", os.path.join(_DIRECTORY, option.attribute)]


def _read_kind(name: str) -> int:
    """Return the kind of an input from its first bytes; BadLink if it cannot be read twice."""
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
    """Return for each -l the file that the search finds, or else the last one that it skips.

    A -l for which the search sees no file is omitted.
    """
    from pylink.inputs.libraries import candidate_files
    from pylink.options.model import Options

    options = Options(line.values)
    # Skipped candidates stand in front of the file that the search finds.
    candidates = (candidate_files(name, options) for name in options.library)
    return [files[-1] for files in candidates if files]


def _quote(argument: str) -> str:
    """Return an argument as written in an options file; BadLink if that is impossible."""
    if '"' in argument:
        raise BadLink(
            f"{argument}: a long command line needs an options file, which cannot hold quotes"
        )
    escaped = argument.replace("\\", "\\\\")
    return (
        f'"{escaped}"' if any(blank in argument for blank in " \t\r\n") or not argument else escaped
    )
