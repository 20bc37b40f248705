"""Which files a link will write, so that none of them is one that it reads, or is written twice.

A name stands for a file whichever way it leads there: files are compared by device and inode, and
outputs that do not exist yet by the folder they will be in and their name there. A phase that opens
a file for reading tells the plan before anything is written; what options name for writing the plan
knows from the table of options, where the column `writes` says so.
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
    Place = tuple[int, int] | tuple[int, int, str]  # of a file, or of its folder, with its name

# Outputs that also exist when a link fails, maybe before it opens an input.
REPORTS = ("--diag-log", "--reproduce", "--sarif-output")

# What is read of the folders that options name: sections, and rules.
SECTION_SUFFIXES = (".section", ".py")


class Output:
    """A file that will be written: the option that says so, as users spell it, and the path."""

    __slots__ = ("option", "path")

    def __init__(self, option: str, path: str) -> None:
        self.option = option
        self.path = path


class Plan:
    """The files of one link.

    `outputs` will be written, `opened` are files of options that were read. `members` maps the file
    of each thin archive that was read to the files of its members, whose absolute names start at
    `root`. `refused` are outputs that would have destroyed a file.
    """

    __slots__ = ("_written", "members", "opened", "outputs", "refused", "root")

    def __init__(
        self,
        values: Mapping[str, Value],
        inputs: Iterable[str],
        sink: Sink,
        *,
        opened: Iterable[str] = (),
    ) -> None:
        """Take the outputs from option values; one that is written twice is a fatal diagnostic.

        So is one that names a file which was `opened` already, such as an options file. `inputs`
        will be, but some outputs cannot wait until they are.
        """
        self.outputs = plan_outputs(values, sink)
        self.members: dict[str, list[str]] = {}
        self.opened = tuple(opened)
        self.refused: list[Output] = []
        self.root = ""
        self._written: dict[Identity, Output] | None = None
        self._compare(sink)
        early = list(self.opened)
        if any(output.option in REPORTS for output in self.outputs):
            early += inputs
        if values.get("profile"):
            early += _section_files(values)
        for file in early:
            self.reads(file, sink)

    def _compare(self, sink: Sink) -> None:
        places: dict[Place, Output] = {}
        if len(self.outputs) < 2:
            return
        for output in self.outputs:
            place = place_of(output.path)
            if place is None:
                continue
            other = places.setdefault(place, output)
            if other is not output:
                sink.fatal(
                    "output-named-twice",
                    file=other.path,
                    option=other.option,
                    other=output.option,
                    path=output.path,
                )

    def written(self, *, again: bool = False) -> dict[Identity, Output]:
        """The outputs that exist, by device and inode; `again` looks anew."""
        if self._written is None or again:
            outputs = ((identity(output.path), output) for output in self.outputs)
            self._written = {path: output for path, output in outputs if path is not None}
        return self._written

    def reads(self, file: str, sink: Sink, status: os.stat_result | None = None) -> None:
        """Make sure that `file`, of which the link needs the contents, is not an output of it.

        A fatal diagnostic when it is, before anything is written.
        """
        written = self.written()
        if not written:
            return
        if status is None:
            try:
                status = os.stat(file)
            except (OSError, ValueError):
                return  # its reader says what is wrong
        output = written.get((status.st_dev, status.st_ino))
        if output is not None:
            self.refuse(output, file, sink)

    def refuse(self, output: Output, file: str, sink: Sink) -> NoReturn:
        """Say that writing `output` would destroy `file`, and see to it that it is not written."""
        self.refused.append(output)
        for renderer in [renderer for renderer in sink.renderers if renderer.path == output.path]:
            renderer.discard()
            sink.renderers.remove(renderer)
        sink.fatal("output-is-input", file=file, option=output.option, path=output.path)


def plan_outputs(values: Mapping[str, Value], sink: Sink) -> list[Output]:
    """The files that options name for writing, in the order of the table of options."""
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
    """What words for the optimizer name, whose errors are reported where they are obeyed."""
    from pylink.options.xopt import read_words

    values_of: dict[str, Value] = {}
    named = values["Xopt"]
    assert isinstance(named, tuple)
    read_words(named, values_of, sink)
    return [] if "pass_remarks_output" in values else plan_outputs(values_of, sink)


def _section_files(values: Mapping[str, Value]) -> list[str]:
    """The files of sections and rules in the folders that options name."""
    files: list[str] = []
    for attribute in ("section_folder", "section_folder_recursive"):
        folders = values.get(attribute)
        for folder in folders if isinstance(folders, tuple) else ():
            for place, below, names in os.walk(folder):
                section_files = (name for name in names if name.lower().endswith(SECTION_SUFFIXES))
                files += (os.path.join(place, name) for name in section_files)
                if attribute == "section_folder":
                    below.clear()
    return files


def identity(path: str) -> Identity | None:
    """What tells a regular file apart from others; None where there is none."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None


def place_of(path: str) -> Place | None:
    """What tells an output apart from others; None for devices, pipes and places that are none."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        folder, name = os.path.split(os.path.realpath(path))
        try:
            status = os.stat(folder)
        except OSError:
            return None
        return status.st_dev, status.st_ino, name
    except (OSError, ValueError):
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None
