"""--depfile: a rule for make and Ninja that names the inputs and options files of a link.

The members of thin archives are named, too. Response files (@FILE) are omitted: build systems
create them for one command and then remove them.
"""

from __future__ import annotations

from pylink.diagnostics.stream import to_bytes
from pylink.files.atomic import write_output
from pylink.observer import Observer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pylink.diagnostics import Sink
    from pylink.options.model import Options
    from pylink.phases.init import Job

# Characters that GNU make and Ninja take literally only after a backslash; a dollar is doubled.
# Ninja cannot express a tab or a bar, and runs the command each time.
_ESCAPES = str.maketrans({" ": "\\ ", "\t": "\\\t", "#": "\\#", "$": "$$", ":": "\\:", "|": "\\|"})

# Characters that end a rule of make, however they are escaped.
_RULE_ENDS = ("\n", "\r", ";")

# Characters that would turn a target into a pattern, an assignment or an order-only prerequisite.
_NOT_IN_TARGETS = ("%", "=", "|")


def format_rule(target: str, prerequisites: Iterable[str]) -> str:
    """Return a rule `target: file file...`, and an empty rule for each file that can be a target.

    The empty rules keep a deleted file from being an error. ValueError for a name with a line break
    or a semicolon, which no rule can contain.
    """
    names = list(dict.fromkeys(prerequisites))
    for name in (target, *names):
        if any(character in name for character in _RULE_ENDS):
            raise ValueError(f"a rule cannot name {name!r}")
    files = [name.translate(_ESCAPES) for name in names]
    lines = [f"{target.translate(_ESCAPES)}:{''.join(f' {file}' for file in files)}"]
    for name, file in zip(names, files, strict=True):
        if not any(character in name for character in _NOT_IN_TARGETS):
            lines.append(f"\n{file}:")
    return "\n".join(lines) + "\n"


def files_of(inputs: Iterable[str], members: Mapping[str, list[str]]) -> list[str]:
    """Return the inputs, each thin archive followed by the files that it refers to, recursively.

    `members` maps each thin archive to the files that it refers to. Each file is listed once.
    """
    if not members:
        return list(dict.fromkeys(inputs))
    paths: dict[str, None] = {}
    work_list = [*inputs][::-1]
    while work_list:
        file = work_list.pop()
        if file not in paths:
            paths[file] = None
            work_list += members.get(file, [])[::-1]
    return list(paths)


class DepfileObserver(Observer):
    """Writes the dependency rule of a successful link."""

    __slots__ = ("_job", "_options", "_sink")

    def __init__(self, options: Options, sink: Sink) -> None:
        self._options = options
        self._sink = sink
        self._job: Job | None = None

    def phase_ended(self, tag: str, result: object) -> None:
        if tag == "init":
            from pylink.phases.init import Job

            assert isinstance(result, Job)
            self._job = result

    def close(self, *, failed: bool) -> None:
        file = self._options.depfile
        if failed or self._job is None or file is None:
            return
        # A shared library that only counts as one has its header as data.
        inputs = [
            source.name
            for source in self._job.inputs
            if source.data is None or source.library is not None
        ]
        files_read = files_of(inputs, self._job.plan.members)
        files_read += self._options.options_file
        target = self._options.depfile_target or self._options.output_file or file
        write_depfile(file, target, files_read, self._sink)


def write_depfile(file: str, target: str, files: Iterable[str], sink: Sink) -> None:
    """Write the rule that names the `files` of a target; a fatal diagnostic on failure."""
    try:
        rule = format_rule(target, files)
    except ValueError as error:
        sink.fatal("cannot-write-file", file=file, reason=str(error))
    write_output(file, to_bytes(rule), sink)
