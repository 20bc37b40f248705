"""Starts a process from a bundle, whose layout is in `bundle.py`.

The main program of a process that has nothing but the interpreter's own modules (-I -S). It runs
the modules in the order of the bundle's rows, each of which is one module. Each comes after the
modules that it imports, so that all imports succeed. Arguments: the script to start instead if a
source has changed since the bundle was made, the directory of the package, then those of the
command line.
"""

import _signal  # type: ignore[import-not-found] # not in typeshed
import sys
from _frozen_importlib import ModuleSpec
from _imp import create_dynamic, exec_dynamic, source_hash
from gc import disable
from marshal import loads
from posix import O_DIRECTORY, O_RDONLY, close, execv, fstat, open, read

# Signals are set up as in pylink.startup.program, before the sources are compared.
if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from pylink.startup.bundle import LaterRow, Row

# The native module that compares source files with the rows, which describe the bundle's modules.
CHECKING_KERNEL = "pylink._native.sourcetimes"
HASH_SIZE = 8  # bytes of a hash of a source, and of the mark, which is a hash of the rows
END_SIZE = 12  # bytes at the end of a bundle: the mark of its rows, and their offset (4 bytes)
# The launcher passes a bundle that it has opened and verified as a path that begins like this.
OPENED_PREFIX = "/proc/self/fd/"


def start(mark: bytes) -> None:
    """Link as the arguments say, with the modules of the bundle (the file with compiled modules).

    `mark` is the hash of its rows. A bundle with another mark has replaced it meanwhile. Then, or
    if a source has changed, the process runs the script instead.
    """
    script, package = sys.argv.pop(1), sys.argv.pop(1)
    disable()  # looking for garbage once costs more than a small link's garbage
    contents = load(mark, package)
    if contents is None:
        execv(sys.executable, [sys.executable, script, *sys.argv[1:]])
    rows, later_rows, kernels, bundle, has_same_times = contents
    modules = sys.modules
    for name, path, _, _, _ in rows:
        if path:
            module = modules[name] = type(sys)(name)
            module.__file__ = source_path(path, package)
            directory, _, file = module.__file__.rpartition("/")
            if file == "__init__.py":
                module.__package__, module.__path__ = name, [directory]
            else:
                module.__package__ = name.rpartition(".")[0]
    for name, _, _, _, code in rows:
        if code is not None:
            exec(code, modules[name].__dict__)
        elif name not in modules:
            spec = ModuleSpec(name, None, origin=kernels)
            exec_dynamic(modules.setdefault(name, create_dynamic(spec)))
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(modules[parent], last, modules[name])
    sys.meta_path[:0] = [Finder({row[0]: row for row in later_rows}, bundle, package)]
    sys.meta_path.append(modules["pylink.packages.sites"].Sites)
    modules["pylink.startup.program"].run(bundled=True, has_same_times=has_same_times)


def load(
    mark: bytes, package: str
) -> "tuple[list[Row], list[LaterRow], str, memoryview, bool] | None":
    """Return both lists of rows, path of the native code, bundle, and whether times are the same.

    A row describes a module: the first list those of all links, the second those of some links.
    None if a source has changed, another bundle has taken the place of this one, or a file cannot
    be loaded, such as native code of another version.
    """
    try:
        file = open(sys.argv[0], O_RDONLY)
        # One call reads it: the interpreter itself reads large files in small parts.
        bundle = memoryview(read(file, fstat(file).st_size))
        close(file)
        if sys.argv[0].startswith(OPENED_PREFIX):
            close(int(sys.argv[0][len(OPENED_PREFIX) :]))  # not for programs that this one starts
    except OSError:
        return None
    if bundle[-END_SIZE:-4] != mark:
        return None
    rows, later_rows, kernels = loads(bundle[int.from_bytes(bundle[-4:], "little") :])
    kernels = f"{package}/{kernels}"
    same_times = _have_same_times(rows, later_rows, kernels, package)
    # Copied and unpacked installations have other times.
    is_good = same_times or (
        same_times is False and _have_same_contents([*rows, *later_rows], bundle, package)
    )
    return (rows, later_rows, kernels, bundle, bool(same_times)) if is_good else None


class Finder:
    """Finds modules that only some links import, and runs their code from the bundle.

    `rows` has, by a module's name, its row, with the path of its source and the offset of its code.
    """

    def __init__(self, rows: "dict[str, LaterRow]", bundle: memoryview, package: str) -> None:
        self.rows = rows
        self.bundle = bundle
        self.package = package

    def find_spec(
        self, name: str, path: object = None, target: object = None
    ) -> "ModuleSpec | None":
        """Return the spec of a module in the bundle; None for other modules."""
        if name not in self.rows:
            return None
        _, path_in_row, _, _, _ = self.rows[name]
        origin = source_path(path_in_row, self.package)
        spec = ModuleSpec(name, self, origin=origin)  # type: ignore[arg-type]
        directory, _, file = origin.rpartition("/")
        if file == "__init__.py":
            spec.submodule_search_locations = [directory]
        return spec

    @staticmethod
    def create_module(spec: ModuleSpec) -> None:
        """Leave creating the module to the interpreter."""

    def exec_module(self, module: "ModuleType") -> None:
        """Run the code of a module, which is read from the bundle only now."""
        _, path, _, _, code_offset = self.rows[module.__name__]
        module.__file__ = source_path(path, self.package)
        exec(loads(self.bundle[code_offset:]), module.__dict__)


def source_path(path: str, package: str) -> str:
    """Return the full path of a source; rows have relative ones for sources of the package."""
    return path if path[0] == "/" else f"{package}/{path}"


def _have_same_times(
    rows: "list[Row]", later_rows: "list[LaterRow]", kernels: str, package: str
) -> "bool | None":
    """Return whether every source has the size and the time of its row. A kernel compares them.

    None if the comparison fails, such as with native code (the file `kernels`) of another version.
    """
    spec = ModuleSpec(CHECKING_KERNEL, None, origin=kernels)
    try:
        kernel = sys.modules[CHECKING_KERNEL] = create_dynamic(spec)
        exec_dynamic(kernel)
        are_unchanged = kernel.are_unchanged
        directory = open(package, O_RDONLY | O_DIRECTORY)
        same_times = bool(are_unchanged(rows, directory) and are_unchanged(later_rows, directory))
        close(directory)
    except (ImportError, AttributeError, TypeError, OSError):
        return None
    return same_times


def _have_same_contents(rows: "list[Row | LaterRow]", bundle: memoryview, package: str) -> bool:
    """Return whether every source has the bytes that its row was compiled from.

    In front of its last END_SIZE bytes, the bundle has a hash for each row, in the order of `rows`.
    """
    hash_offset = len(bundle) - END_SIZE - HASH_SIZE * len(rows)
    for _, path, size, _, _ in rows:
        if path:
            try:
                file = open(source_path(path, package), O_RDONLY)
                source = read(file, size + 1)
                close(file)
            except OSError:
                return False
            if (
                len(source) != size
                or source_hash(size, source) != bundle[hash_offset : hash_offset + HASH_SIZE]
            ):
                return False
        hash_offset += HASH_SIZE
    return True
