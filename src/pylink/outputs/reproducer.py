"""--reproduce: an archive of all files that a link read, which `pylink reproduce` links again.

A Zstandard-compressed tar file: `manifest.json`, and below `root` every file at its absolute path,
so that relative names keep their meaning. Inputs that were in memory are below `data`. Absolute
names in the manifest are rewritten to lead to `root` from the working directory; `restore_paths`
undoes this.
"""

from __future__ import annotations

import io
import json
import os
import platform
import stat
import tarfile
from typing import cast

import zstandard

from pylink import __version__
from pylink.diagnostics.errors import LinkError, reason_of
from pylink.facts.releases import NEWEST
from pylink.files.atomic import WholeFile, open_output
from pylink.files.workdir import working_directory
from pylink.inputs.archivehost import thin_members
from pylink.inputs.libraries import candidate_files
from pylink.options.plan import identity
from pylink.options.table import BY_ATTRIBUTE, FILE, OPTIONS
from pylink.outputs.depfile import files_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import BinaryIO

    from pylink.diagnostics import Sink
    from pylink.options.model import Input, Options
    from pylink.options.plan import OutputPlan
    from pylink.options.table import Value

FORMAT = 1  # version of the manifest
MANIFEST = "manifest.json"
ROOT = "root"  # the directory of the archive that stands for /
DATA = "data"  # the directory of inputs that were not files

# Options that name files or directories, besides `options_file` and those with the column `writes`.
# In the manifest, names of READ_PATHS lead into the archive; those of TOOL_PATHS stay as they are.
READ_PATHS = ("library_path", "source_root", "section_folder", "section_folder_recursive")
TOOL_PATHS = ("nvvmpath", "ptxas_path")

# Environment variables that the manifest records. Only the first is used when the link is
# reproduced: the options of PYLINK_OPTIONS are among the manifest's values, and tools are searched
# again.
LIBRARY_VARIABLE = "LIBRARY_PATH"
ENVIRONMENT = (
    LIBRARY_VARIABLE, "PYLINK_OPTIONS", "PYLINK_WIZARD", "CUDA_HOME", "CUDA_PATH", "PATH",
)  # fmt: skip


def up_to_root(directory: str) -> str:
    """Return the relative path from a working directory in the archive to the archive's `root`."""
    depth = len([part for part in directory.split("/") if part])
    return "/".join([".."] * (depth + 1) + [ROOT])


def restore_paths(text: str, up_path: str) -> str:
    """Return a text with paths that lead to the archive's root turned back into absolute paths.

    `up_path` is the result of `up_to_root`.
    """
    return text.replace(f"{up_path}/", "/")


class Reproducer:
    """The options and inputs of one link, until it ends and the archive can be written.

    `whole_libraries` says for each `-l` whether all members of the library are linked.
    """

    __slots__ = ("_directory", "_inputs", "_options", "_plan", "_values", "_whole_libraries")

    def __init__(
        self,
        options: Options,
        values: Mapping[str, Value],
        inputs: Sequence[Input],
        whole_libraries: Sequence[bool],
        plan: OutputPlan,
    ) -> None:
        self._options = options
        self._values = values
        self._inputs = list(inputs)
        self._whole_libraries = list(whole_libraries)
        self._plan = plan
        self._directory = working_directory() or "/"

    def write(self, sink: Sink) -> None:
        """Write the archive; a fatal diagnostic on failure.

        Writes nothing if the plan refused the archive, which would have destroyed an input.
        """
        path = str(self._options.reproduce)
        if any(output.path == path for output in self._plan.refused):
            return
        files = self._files()
        output_identity = identity(path)
        for file in files if output_identity is not None else ():
            if identity(file) == output_identity:
                self._plan.check_input(file, sink)
        archive_file = open_output(path, sink)
        try:
            compressor = zstandard.ZstdCompressor(level=3)
            with (
                compressor.stream_writer(
                    cast("BinaryIO", _Stream(archive_file)), closefd=False
                ) as packed,
                tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as archive,
            ):
                self._pack(archive, files)
            archive_file.commit()
        except (OSError, ValueError, tarfile.TarError) as error:
            sink.fatal("cannot-write-file", file=path, reason=reason_of(error))
        finally:
            archive_file.discard()

    def _files(self) -> list[str]:
        """Return every file that the link read or, if it failed, would have read."""
        inputs = [source.name for source in self._inputs if source.data is None]
        for name in self._options.library:
            inputs += candidate_files(name, self._options)
        # Archives may also be candidates of the library search, or inputs that a failed link did
        # not reach: the plan does not know their members.
        members = {file: thin_members(file) for file in inputs if os.path.isfile(file)}
        return [*files_of(inputs, {**members, **self._plan.members}), *self._plan.opened]

    def _pack(self, archive: tarfile.TarFile, files: Sequence[str]) -> None:
        """Add the manifest, directories, inputs in memory, and files to the archive."""
        up_path = up_to_root(self._directory)
        file_paths = {}  # by path in the archive: the name of a file
        directories = dict.fromkeys(_directories_to(self._directory, ""))
        not_packed = []  # files that the archive lacks, with the reason
        for file in files:
            if "\0" in file:
                continue  # no link opens it
            directories.update(
                dict.fromkeys(_directories_to(self._directory, os.path.dirname(file)))
            )
            try:
                status = os.stat(file)
            except (OSError, ValueError) as error:
                not_packed.append(f"{file}: {reason_of(error)}")
                continue
            archive_path = ROOT + os.path.abspath(os.path.join(self._directory, file))
            if stat.S_ISDIR(status.st_mode):
                directories[archive_path] = None
            elif stat.S_ISREG(status.st_mode):
                file_paths[archive_path] = file
            else:
                not_packed.append(f"{file}: it is not a regular file")
        contents = {
            f"{DATA}/{n}": source.data for n, source in enumerate(self._inputs) if source.data
        }
        manifest = self._manifest(up_path, not_packed)
        text = json.dumps(manifest, indent=1, sort_keys=True).encode()
        _add_bytes(archive, MANIFEST, text)
        for directory in sorted(directories):
            row = tarfile.TarInfo(directory)
            row.type, row.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(row)
        for archive_path, data in contents.items():
            assert data is not None
            _add_bytes(archive, archive_path, data)
        for archive_path, file in sorted(file_paths.items()):
            try:
                with open(file, "rb") as stream:
                    row = tarfile.TarInfo(archive_path)
                    row.size = os.fstat(stream.fileno()).st_size
                    archive.addfile(row, stream)
            except PermissionError:
                continue  # the link could not read it either

    def _manifest(self, up_path: str, not_packed: list[str]) -> dict[str, object]:
        """Return the contents of manifest.json: all facts of the link that are not in the files."""
        values = {
            name: _archive_value(name, value, up_path)
            for name, value in self._values.items()
            if name != "reproduce"
        }
        if self._options.nvlink:
            values["nvlink_version"] = self._options.nvlink
        inputs = [
            {
                "name": _archive_path_of(source.name, up_path)
                if source.data is None
                else source.name,
                "data": None if source.data is None else len(source.data),
                "whole": source.whole_archive,
            }
            for source in self._inputs
        ]
        environment = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
        if LIBRARY_VARIABLE in environment:
            directories = environment[LIBRARY_VARIABLE].split(":")
            environment[LIBRARY_VARIABLE] = ":".join(
                _archive_path_of(directory, up_path) for directory in directories
            )
        return {
            "format": FORMAT,
            "folder": ROOT + self._directory,
            "values": values,
            "recorded": self._options.recorded,
            "inputs": inputs,
            "whole_libraries": self._whole_libraries,
            "options_files": [_archive_path_of(file, up_path) for file in self._plan.opened],
            "not_packed": not_packed,
            "environment": environment,
            "versions": {
                "pylink": __version__,
                "python": platform.python_version(),
                "nvlink": self._options.nvlink or f"at most {NEWEST.name}",
                "system": platform.platform(),
                **self._tools(),
            },
        }

    def _tools(self) -> dict[str, str]:
        """Return the paths of programs that link-time optimization would start on this machine."""
        if not (self._options.link_time_opt or self._options.dlto):
            return {}
        from pylink.subtools.programs import find_ptxas

        return {"ptxas": find_ptxas(self._options) or "none was found"}


class _Stream(io.RawIOBase):
    """A binary stream that writes to a `WholeFile`, for the compressor."""

    def __init__(self, file: WholeFile) -> None:
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        contents = bytes(data)  # type: ignore[call-overload] # any buffer
        self._file.write(contents)
        return len(contents)


def pack_after(reproducer: Reproducer, sink: Sink, *, failed: bool) -> None:
    """Write the archive at the end of a link; a failed link keeps its own error."""
    try:
        reproducer.write(sink)
    except LinkError:
        if not failed:
            raise


def _directories_to(base: str, name: str) -> list[str]:
    """Return the directories in the archive on the way to `name`, which is relative to `base`.

    `name` itself is the last. Each of them must exist for `..` to work.
    """
    path = os.path.join(base, name)
    parts = path.split("/")
    prefixes = ["/".join(parts[: number + 1]) or "/" for number in range(len(parts))]
    return [(ROOT + os.path.abspath(prefix)).rstrip("/") for prefix in prefixes]


def _archive_path_of(name: str, up_path: str) -> str:
    """Return a name that leads to the file in the archive; relative names stay."""
    return up_path + name if name.startswith("/") else name


def _archive_value(attribute: str, value: Value, up_path: str) -> Value:
    """Return an option's value with paths into the archive; paths of tools, not packed, stay."""
    writes = BY_ATTRIBUTE[attribute].writes
    if isinstance(value, str) and (writes == FILE or (writes and value != "-")):
        return _archive_path_of(value, up_path)
    if attribute in (*READ_PATHS, "options_file") and isinstance(value, tuple):
        return tuple(_archive_path_of(item, up_path) for item in value)
    return value


def _add_bytes(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    """Add a file with these contents to the archive."""
    row = tarfile.TarInfo(name)
    row.size = len(data)
    archive.addfile(row, io.BytesIO(data))


# Options that `pylink reproduce` never takes from a manifest: outputs, paths of programs, settings
# of reports, whose rules are programs, and options files, whose options are in the manifest.
IGNORED_OPTIONS = frozenset(
    [option.attribute for option in OPTIONS if option.writes]
    + ["options_file", "reproduce", "rule", "section", "set", "metrics"]
    + ["apply_rules"]
    + [*TOOL_PATHS, "section_folder", "section_folder_recursive"]
)
