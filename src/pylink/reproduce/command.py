"""`pylink reproduce`: link again what `--reproduce` packed.

The archive is not trusted: it cannot choose which files are written and which programs are started
or loaded.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile

from pylink.api.values import check_choices, check_keywords
from pylink.diagnostics import Diagnostic, NvlinkRenderer, Sink
from pylink.diagnostics.errors import LinkError
from pylink.files.workdir import enter_root, leave_root
from pylink.inputs.archivehost import thin_members
from pylink.linker import run_link
from pylink.options.check import check
from pylink.options.model import Input, note_output, note_text
from pylink.options.parse import CommandLine, parse
from pylink.options.plan import OutputPlan, plan_outputs
from pylink.options.table import FILE, OPTIONS
from pylink.outputs.reproducer import (
    DATA,
    IGNORED_OPTIONS,
    LIBRARY_VARIABLE,
    MANIFEST,
    READ_PATHS,
    ROOT,
    TOOL_PATHS,
    restore_paths,
    up_to_root,
)
from pylink.renderers.configuration import configure_sink, open_reports
from pylink.reproduce.archive import BadArchiveError, read_manifest, unpack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from pylink.options.table import Value

# Options whose values are arguments for compilers; these may name files to write.
COMPILER_ARGUMENTS = ("Xptxas", "Xnvvm")


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(
        prog="pylink reproduce",
        description="Link again what --reproduce packed. Any other option or input is added to "
        "those of the archive; nothing is written that is not named here.",
    )
    options.add_argument("file", metavar="FILE", help="archive that --reproduce wrote")
    options.add_argument("-o", dest="output", metavar="OUT", help="file to write the output to")
    options.add_argument(
        "--trust",
        action="store_true",
        help="also pass the archive's -Xptxas and -Xnvvm arguments to the compilers",
    )
    return options


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status of the link, or 1 if the archive is not valid."""
    # The arguments are those of a link, which the parser of links reads: argparse, and with it
    # `terminal.running.run`, would take its options for errors. Errors are diagnostics of a link.
    arguments = list(argv or ())
    trusted = "--trust" in arguments
    link_arguments = [word for word in arguments if word != "--trust"]
    if not link_arguments or link_arguments[0].startswith("-"):
        parser().parse_args(arguments)  # prints the usage and exits
    file = link_arguments.pop(0)
    sink = Sink(NvlinkRenderer(tool="pylink"))
    start_directory = os.getcwd()
    directory = tempfile.mkdtemp(prefix="pylink-reproduce-")
    try:
        try:
            unpack(file, directory)
            manifest = read_manifest(directory)
            recorded_link = RecordedLink(manifest, directory, trusted=trusted)
        except BadArchiveError as error:
            sink.fatal("bad-reproducer", file=file, reason=str(error))
        return recorded_link.link(link_arguments, start_directory)
    except LinkError:
        return sink.exit_code()
    finally:
        os.chdir(start_directory)
        sink.close()
        shutil.rmtree(directory, ignore_errors=True)


class RecordedLink:
    """The link that a manifest describes, checked.

    The archive is unpacked in `_archive_directory`. In it, `_directory` stands for the directory
    where the link ran. `_path_to_root` is the relative path from there to the directory that stands
    for `/`, such as `../../root`.
    """

    def __init__(self, manifest: dict[str, Any], directory: str, *, trusted: bool) -> None:
        """Check the manifest; BadArchiveError if --reproduce would not write it."""
        self._archive_directory = os.path.realpath(directory)
        try:
            place = manifest["folder"]
            self._directory = os.path.join(self._archive_directory, place)
            if place != ROOT + "/" and not place.startswith(ROOT + "/"):
                raise ValueError("the entry 'folder' is not valid")
            self._path_to_root = up_to_root(place.removeprefix(ROOT))
            self._check_path(self._directory)
            if not os.path.isdir(self._directory):
                raise ValueError("the entry 'folder' is not valid")
            output_name = manifest["values"].get("output_file")
            self._output = (
                None if output_name is None else restore_paths(str(output_name), self._path_to_root)
            )
            self._values = self._read_values(manifest["values"], trusted=trusted)
            self._recorded = str(manifest["recorded"])
            self._whole_libraries = [bool(is_whole) for is_whole in manifest["whole_libraries"]]
            self._library_path = self._read_library_path(manifest["environment"])
            self._inputs = [
                self._read_input(number, source) for number, source in enumerate(manifest["inputs"])
            ]
            self._check_members()
            if len(self._whole_libraries) != len(self._list("library")):
                raise ValueError("the entry 'whole_libraries' is not valid")
        except KeyError as error:
            raise BadArchiveError(
                f"'{MANIFEST}' is damaged: the entry {error} is missing"
            ) from error
        except (TypeError, ValueError, AttributeError, LinkError) as error:
            raise BadArchiveError(f"'{MANIFEST}' is damaged: {error}") from error

    def link(self, link_arguments: Sequence[str], start_directory: str) -> int:
        """Link with further arguments, and return the exit status.

        File names in the arguments are relative to `start_directory`.
        """
        sink = RestoringSink(self._path_to_root)
        enter_root(os.path.join(self._archive_directory, ROOT))
        try:
            line = parse(link_arguments, sink, CommandLine())
            _make_absolute(start_directory, line.values)
            values = {**self._values, **line.values}
            for attribute in line.lists:
                values[attribute] = self._list(attribute) + _items(line.values[attribute])
            inputs = self._inputs + [
                Input(os.path.join(start_directory, name), whole_archive=is_whole)
                for name, is_whole in zip(line.inputs, line.whole_inputs, strict=True)
            ]
            added = line.inputs or set(line.values) - {"output_file"}
            os.chdir(self._directory)
            names = [restore_paths(source.name, self._path_to_root) for source in inputs]
            settings = {**values, "output_file": self._output}
            configure_sink(sink, settings, inputs=names, terminal_form="text")
            plan = OutputPlan(values, [source.name for source in inputs], sink)
            plan.root = self._path_to_root
            open_reports(sink, values)
            check(values, sink, has_inputs=bool(inputs), needs_output=False, needs_nvvmpath=False)
            run_link(
                values,
                inputs,
                plan,
                sink,
                self._whole_libraries + line.whole_libraries,
                noted=(
                    note_output(settings),
                    self._noted_options(values, names, added=bool(added)),
                ),
                library_path=self._library_path,
            )
        except LinkError:
            return sink.exit_code()
        finally:
            sink.close()
            leave_root()
        return sink.exit_code()

    def _noted_options(self, values: dict[str, Value], names: list[str], *, added: bool) -> str:
        """Return the text of options for the output's note on its tool: the recorded text.

        With `added`, options or inputs were added, so that the text is made anew from `values` and
        the `names` of all inputs.
        """
        return (
            restore_paths(note_text(values, names), self._path_to_root) if added else self._recorded
        )

    def _list(self, attribute: str) -> tuple[str, ...]:
        """Return the recorded value of an option that takes a list."""
        return _items(self._values.get(attribute, ()))

    def _read_values(self, manifest_values: dict[str, Any], *, trusted: bool) -> dict[str, Value]:
        """Return the recorded options, checked, without those that write files."""
        values = {
            name: value for name, value in manifest_values.items() if name not in IGNORED_OPTIONS
        }
        arch = values.pop("arch")
        if not isinstance(arch, str):
            raise TypeError("arch is not a string")
        if not trusted and any(values.get(name) for name in COMPILER_ARGUMENTS):
            raise BadArchiveError(
                "it has arguments for compilers (-Xptxas, -Xnvvm), which could write any file; "
                "if you trust it, add --trust"
            )
        checked: dict[str, Value] = {**check_keywords(values), "arch": arch}
        check_choices(checked, Sink())
        # A link with --register-link-binaries does not report removed kernels. That option is not
        # repeated, since it writes a file.
        if manifest_values.get("register_link_binaries"):
            checked["diag_suppress"] = (*_items(checked.get("diag_suppress")), "kernels-removed")
        if checked.get("Xopt") and plan_outputs({"Xopt": checked["Xopt"]}, Sink()):
            del checked["Xopt"]  # its value writes a file
        for attribute in ("library_path", "source_root"):
            for name in _items(checked.get(attribute, ())):
                self._check_path(os.path.join(self._directory, name))
        return checked

    def _read_library_path(self, environment: dict[str, Any]) -> str:
        """Return the recorded value of the variable with directories of libraries, checked."""
        directories = str(environment.get(LIBRARY_VARIABLE, ""))
        for name in directories.split(":"):
            self._check_path(os.path.join(self._directory, name))
        return directories

    def _read_input(self, number: int, row: dict[str, Any]) -> Input:
        """Return the input of row `number` of the manifest; that of one in memory is in a file."""
        name, is_whole = row["name"], bool(row["whole"])
        if not isinstance(name, str):
            raise TypeError("the name of an input is not a string")
        if row["data"] is None:
            self._check_path(os.path.join(self._directory, name))
            return Input(name, whole_archive=is_whole)
        if not row["data"]:
            return Input(name, b"", whole_archive=is_whole)
        with open(os.path.join(self._archive_directory, DATA, str(number)), "rb") as stream:
            return Input(name, stream.read(), whole_archive=is_whole)

    def _check_members(self) -> None:
        """Raise ValueError if a thin archive names a file outside what --reproduce packed.

        A path of a member is relative to the thin archive or to the working directory.
        """
        root = os.path.join(self._archive_directory, ROOT)
        for directory, _, names in os.walk(root):
            for name in names:
                for member in thin_members(os.path.join(directory, name)):
                    if not member.startswith(self._archive_directory + "/"):
                        self._check_path(f"{root}/{member}")
                        continue
                    self._check_path(member)
                    if not os.path.lexists(member):
                        member_path = os.path.relpath(member, directory)
                        self._check_path(os.path.join(self._directory, member_path))

    def _check_path(self, path: str) -> None:
        """Raise ValueError if a path leads out of the archive."""
        top = self._archive_directory
        if os.path.commonpath([top, os.path.realpath(path)]) != top:
            raise ValueError(f"the name '{path}' leads out of the archive")


class RestoringSink(Sink):
    """A receiver of diagnostics that gives files the names of the machine where the link ran."""

    __slots__ = ("_path_to_root",)

    def __init__(self, path_to_root: str) -> None:
        super().__init__(NvlinkRenderer(tool="pylink"))
        self._path_to_root = path_to_root

    def dispatch(self, diagnostic: Diagnostic) -> Diagnostic | None:
        self._restore(diagnostic)
        return super().dispatch(diagnostic)

    def _restore(self, record: Diagnostic) -> None:
        """Give a diagnostic, and all that belong to it, the paths of the original link."""
        if record.file is not None:
            record.file = restore_paths(record.file, self._path_to_root)
        for name, value in record.args.items():
            if isinstance(value, str):
                record.args[name] = restore_paths(value, self._path_to_root)
        for part in (*record.children, *record.hints, *record.notes, *record.extra):
            self._restore(part)


def _make_absolute(directory: str, values: dict[str, Value]) -> None:
    """Make file names in option values absolute; they are relative to `directory`."""
    for option in OPTIONS:
        value = values.get(option.attribute)
        if isinstance(value, str) and (option.writes or option.attribute in TOOL_PATHS):
            if value != "-" or option.writes == FILE:
                values[option.attribute] = os.path.join(directory, value)
        elif option.attribute in READ_PATHS:
            items = _items(value or ())
            if items:
                values[option.attribute] = tuple(os.path.join(directory, item) for item in items)


def _items(value: Value) -> tuple[str, ...]:
    """Return the items of a list; none for another value."""
    return value if isinstance(value, tuple) else ()
