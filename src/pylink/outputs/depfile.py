"""--depfile: a rule for make and Ninja that names every file a link read.

Not the response files of @FILE, which build systems make anew for each command and then remove.
"""

from __future__ import annotations

from pylink.diagnostics.errors import reason_of
from pylink.diagnostics.stream import to_bytes
from pylink.files.atomic import write_whole
from pylink.observer import Observer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pylink.diagnostics import Sink
    from pylink.options.model import Options
    from pylink.phases.init import Job

# What GNU make and Ninja take literally only after a backslash; a dollar is doubled. Ninja knows
# no way to write a tab or a bar, and runs the command each time.
_ESCAPES = str.maketrans({" ": "\\ ", "\t": "\\\t", "#": "\\#", "$": "$$", ":": "\\:", "|": "\\|"})

# What make takes for the end of a rule, however it is written.
_IMPOSSIBLE = ("\n", "\r", ";")

# What as a target would be a pattern, an assignment or a second kind of prerequisite to make.
_NO_TARGET = ("%", "=", "|")


def rule(target: str, prerequisites: Iterable[str]) -> str:
    """`target: file file...`, and an empty rule for each file, so that a deleted one is not an
    error.

    ValueError for a name with a line break or a semicolon, which no rule can hold.
    """
    names = list(dict.fromkeys(prerequisites))
    for name in (target, *names):
        if any(character in name for character in _IMPOSSIBLE):
            raise ValueError(f"a rule cannot name {name!r}")
    files = [name.translate(_ESCAPES) for name in names]
    lines = [f"{target.translate(_ESCAPES)}:{''.join(f' {file}' for file in files)}"]
    for name, file in zip(names, files, strict=True):
        if not any(character in name for character in _NO_TARGET):
            lines.append(f"\n{file}:")
    return "\n".join(lines) + "\n"


def files_of(inputs: Iterable[str], members: Mapping[str, list[str]]) -> list[str]:
    """The inputs, each followed by what it refers to if it is a thin archive, as members may be.

    `members` has the files of thin archives. A file comes once.
    """
    paths: dict[str, None] = {}
    waiting = [*inputs][::-1]
    while waiting:
        file = waiting.pop()
        if file not in paths:
            paths[file] = None
            waiting += members.get(file, [])[::-1]
    return list(paths)


class DepfileObserver(Observer):
    """Writes the rule of a link that made its output."""

    __slots__ = ("_job", "_options", "_sink")

    def __init__(self, options: Options, sink: Sink) -> None:
        self._options = options
        self._sink = sink
        self._job: Job | None = None

    def after(self, tag: str, result: object) -> None:
        if tag == "init":
            from pylink.phases.init import Job

            assert isinstance(result, Job)
            self._job = result

    def close(self, *, failed: bool) -> None:
        file = self._options.depfile
        if failed or self._job is None or file is None:
            return
        inputs = [source.name for source in self._job.inputs if source.data is None]
        read = files_of(inputs, self._job.plan.members)
        read += self._options.options_file
        target = self._options.depfile_target or self._options.output_file or file
        write_depfile(file, target, read, self._sink)


def write_depfile(file: str, target: str, read: Iterable[str], sink: Sink) -> None:
    """Write the rule of a target to a file; a fatal diagnostic when that cannot be done."""
    try:
        write_whole(file, to_bytes(rule(target, read)))
    except (OSError, ValueError) as error:
        sink.fatal("cannot-write-file", file=file, reason=reason_of(error))
