"""The files that a link will write: none of them may be an input, or the file of two options.

Files are compared by device and inode, so links and relative names do not matter. Outputs that do
not exist yet are compared by their directory and their name in it. The plan finds outputs by the
column `writes` of the table of options. A phase that reads a file calls `check_input` first.
"""

from __future__ import annotations

import os
import stat

from pylink.options.table import FILE, OPTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import NoReturn

    from pylink.diagnostics import Sink
    from pylink.options.table import Value

    Identity = tuple[int, int]  # device and inode
    OutputIdentity = (
        tuple[int, int] | tuple[int, int, str]
    )  # device and inode of a file, or those of its directory and the file's name in it

# Options of outputs that a failed link writes, too, maybe before it opens an input.
REPORTS = ("--diag-log", "--reproduce", "--sarif-output")

# Suffixes of files in directories of sections and rules, which reports of --profile use.
SECTION_SUFFIXES = (".section", ".py")


class Output:
    """A file that will be written: the option that names it, as users spell it, and the path."""

    __slots__ = ("option", "path")

    def __init__(self, option: str, path: str) -> None:
        self.option = option
        self.path = path


class OutputPlan:
    """The files of one link.

    `outputs` will be written; `opened` are the options files that were read. `members` maps the
    name of each thin archive that was read to the files of its members. `root` is the directory
    that stands for `/` in absolute names of members, if a link is reproduced. `refused` are outputs
    that would have destroyed an input.
    """

    __slots__ = ("_existing_outputs", "members", "opened", "outputs", "refused", "root")

    def __init__(
        self,
        values: Mapping[str, Value],
        inputs: Iterable[str],
        sink: Sink,
        *,
        opened: Iterable[str] = (),
    ) -> None:
        """Find the outputs in option values; two outputs in one file are a fatal error.

        An output that is one of the options files `opened` is a fatal error, too.
        `inputs` are checked now only if there are outputs that are written before the inputs are
        opened.
        """
        self.outputs = plan_outputs(values, sink)
        self.members: dict[str, list[str]] = {}
        self.opened = tuple(opened)
        self.refused: list[Output] = []
        self.root = ""
        self._existing_outputs: dict[Identity, Output] | None = None
        self._refuse_repeats(sink)
        early = list(self.opened)
        if any(output.option in REPORTS for output in self.outputs):
            early += inputs
        if values.get("profile"):
            early += _section_files(values)
        for file in early:
            self.check_input(file, sink)

    def _refuse_repeats(self, sink: Sink) -> None:
        """Report a fatal diagnostic if two outputs are one file."""
        outputs_by_identity: dict[OutputIdentity, Output] = {}
        if len(self.outputs) < 2:
            return
        for output in self.outputs:
            file_id = output_identity(output.path)
            if file_id is None:
                continue
            other = outputs_by_identity.setdefault(file_id, output)
            if other is not output:
                sink.fatal(
                    "output-named-twice",
                    file=other.path,
                    option=other.option,
                    other=output.option,
                    path=output.path,
                )

    def existing_outputs(self, *, again: bool = False) -> dict[Identity, Output]:
        """Return the outputs that exist as regular files, by device and inode.

        The answer of the first call is kept; `again` looks at the files again.
        """
        if self._existing_outputs is None or again:
            outputs = ((identity(output.path), output) for output in self.outputs)
            self._existing_outputs = {
                file_id: output for file_id, output in outputs if file_id is not None
            }
        return self._existing_outputs

    def check_input(self, file: str, sink: Sink, status: os.stat_result | None = None) -> None:
        """Refuse an input that is also an output, before anything is written.

        That is a fatal diagnostic. `status` is the result of os.stat for `file`, if known.
        """
        existing_outputs = self.existing_outputs()
        if not existing_outputs:
            return
        if status is None:
            try:
                status = os.stat(file)
            except (OSError, ValueError):
                return  # its reader reports the error
        output = existing_outputs.get((status.st_dev, status.st_ino))
        if output is not None:
            self.refuse(output, file, sink)

    def refuse(self, output: Output, file: str, sink: Sink) -> NoReturn:
        """Report that `output` would destroy `file`; drop the renderers that write to it."""
        self.refused.append(output)
        for renderer in [renderer for renderer in sink.renderers if renderer.path == output.path]:
            renderer.discard()
            sink.renderers.remove(renderer)
        sink.fatal("output-is-input", file=file, option=output.option, path=output.path)


def plan_outputs(values: Mapping[str, Value], sink: Sink) -> list[Output]:
    """Return the files that options name for writing, in table order; those of -Xopt last."""
    outputs = []
    for option in OPTIONS:
        if option.writes and option.attribute in values:
            path = values[option.attribute]
            if path and (path != "-" or option.writes == FILE):
                short = option.attribute == "output_file"
                outputs.append(Output("-o" if short else f"--{option.long}", str(path)))
    if values.get("Xopt"):
        outputs += _xopt_outputs(values, sink)
    return outputs


def _xopt_outputs(values: Mapping[str, Value], sink: Sink) -> list[Output]:
    """Return the outputs in the values of -Xopt; none if --pass-remarks-output is given, too."""
    from pylink.options.xopt import read_xopt

    values_of: dict[str, Value] = {}
    arguments = values["Xopt"]
    assert isinstance(arguments, tuple)
    read_xopt(arguments, values_of, sink)
    return [] if "pass_remarks_output" in values else plan_outputs(values_of, sink)


def _section_files(values: Mapping[str, Value]) -> list[str]:
    """Return the files of sections and rules in the directories that options name."""
    files: list[str] = []
    for attribute in ("section_folder", "section_folder_recursive"):
        roots = values.get(attribute)
        for root in roots if isinstance(roots, tuple) else ():
            for directory, subdirectories, names in os.walk(root):
                section_files = (name for name in names if name.lower().endswith(SECTION_SUFFIXES))
                files += (os.path.join(directory, name) for name in section_files)
                if attribute == "section_folder":
                    subdirectories.clear()
    return files


def identity(path: str) -> Identity | None:
    """Return device and inode of a regular file; None for everything else."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None


def output_identity(path: str) -> OutputIdentity | None:
    """Return the identity of an output, even before it exists.

    None for what is not a regular file, such as a device, and for bad paths.
    """
    try:
        status = os.stat(path)
    except FileNotFoundError:
        directory, name = os.path.split(os.path.realpath(path))
        try:
            status = os.stat(directory)
        except OSError:
            return None
        return status.st_dev, status.st_ino, name
    except (OSError, ValueError):
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None
