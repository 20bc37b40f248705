"""The bundle: one file with the code of all modules that every link imports.

Opening, checking and reading sixty files takes longer than a small link does. A bundle has a row
for each module. It is good while each source has the size and the time in its row, or else the same
bytes (by a hash). The bundled code has no docstrings and no annotations. The launcher
(src/_native/launcher) looks for a bundle in three places:

1. where the interpreter keeps compiled modules: the first link writes it there if it may;
2. in the user's cache (`usercache.py`): the first link writes it there if no other one is good;
3. beside this file: setup.py puts it into wheels, where times are unknown and bytes decide.

If none is good, the program starts as any Python script.

A bundle begins as a compiled main program (.pyc) of `bootstrap.py`, with which the launcher starts
the interpreter. Data follows: the code of each module that only some links import, and the rows of
all modules as one object, so that a name in several modules is created once, then a hash of each
source. At the end are the mark, which is a hash of all rows, and the offset of the rows. The main
program has the mark, too. Bytes 4 to 11, which the interpreter ignores, are a checksum of all later
bytes.

    python -m pylink.startup.bundle     # writes it now, if links cannot write it later
"""

from __future__ import annotations

import os
import sys
from _frozen_importlib_external import ExtensionFileLoader, SourceFileLoader
from _imp import source_hash

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import CodeType, ModuleType

    # A module: its name; path, size in bytes, time in ns of the source; code. Native modules have
    # neither path nor code. Paths are relative to the package, except for those of the interpreter.
    Row = tuple[str, str, int, int, CodeType | None]
    # Like Row, for modules that only some links import; the last number is the offset of the code.
    LaterRow = tuple[str, str, int, int, int]

# Directories of this module and of the package, and the bundle (one file with the compiled modules
# of links), where the interpreter keeps compiled modules.
HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.dirname(HERE)
NAME = f"link.{sys.implementation.cache_tag}.pyc"
PATH = f"{PACKAGE}/__pycache__/{NAME}"
# The bundle in wheels. Scripts that shrink images remove *.pyc, so it has another ending.
SHIPPED = f"{HERE}/link.{sys.implementation.cache_tag}.bundle"

# Modules that every link imports. The bundle also gets the modules that these import.
EVERY_LINK = (
    "pylink.startup.program",
    "pylink.command.cli",
    "pylink.packages.sites",
    "pylink.linker",
    "pylink.options.model",
)
# Modules that only links of host objects or archives, or device-link steps, import.
SOME_LINKS = (
    "pylink.inputs.unpacking",
    "pylink.inputs.archive",
    "pylink.inputs.archivehost",
    "pylink.inputs.archivethin",
    "pylink.options.commands",
    "pylink.devicelink.command",
    "pylink.devicelink.step",
)

# The argument of this program that stands for the user's cache, in place of a path.
CACHE = "--cache"

# Arguments of the interpreter with which it loads nothing from site-packages.
ISOLATED = ("-I", "-S")

PYC_HEADER_SIZE = 16  # bytes: magic number, then 12 that a bundle uses in its own way
SIZE_FIELD = slice(12, 16)  # the size of the bundle, so the launcher detects a truncated one
HASH_SIZE = 8  # bytes of a hash of a source, and of the mark, a hash of all rows
OFFSET_SIZE = 4  # bytes of the offset of the rows, at the end


def make_for_next(*, shipped: bool = False) -> None:
    """Make a bundle for the next link, in a process of its own.

    It is written beside compiled modules if that is allowed, or else to the user's cache. `shipped`
    says that the bundle in the wheel is good: then the cache needs none.
    """
    from pylink.startup.usercache import cache_directory

    if may_write():
        target = PATH
    elif shipped or cache_directory() is None:
        return
    else:
        target = CACHE
    command = [sys.executable, *ISOLATED, os.path.abspath(__file__), target]
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    streams = [(os.POSIX_SPAWN_DUP2, null, stream) for stream in range(3)]
    try:
        os.waitpid(os.posix_spawn(sys.executable, command, os.environ, file_actions=streams), 0)
    except OSError:  # links go on without a bundle
        pass
    finally:
        os.close(null)


def may_write() -> bool:
    """Return whether the interpreter writes compiled modules, and this user may write at PATH."""
    if sys.dont_write_bytecode or os.environ.get("PYTHONDONTWRITEBYTECODE"):
        return False
    paths = (PACKAGE, os.path.dirname(PATH), PATH)  # each may belong to another user
    return all(os.access(path, os.W_OK) for path in paths if os.path.lexists(path))


class Recorder:
    """Records which modules are loaded from files, in the order in which they are ready."""

    def __init__(self) -> None:
        self.ready: list[ModuleType] = []

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return the other finders' spec, with a loader that records when the module is ready."""
        others = (finder for finder in sys.meta_path if finder is not self)
        specs = (finder.find_spec(name, path, target) for finder in others)  # type: ignore[arg-type]
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and isinstance(spec.loader, (ExtensionFileLoader, SourceFileLoader)):
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                self.ready.append(module)
                # The module may have put another finder in front of this one.
                sys.meta_path.remove(self)
                sys.meta_path.insert(0, self)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _import_all(names: tuple[str, ...]) -> list[ModuleType]:
    """Import the modules and return all that were loaded, each after those that it imports."""
    recorder = Recorder()
    sys.meta_path.insert(0, recorder)
    try:
        for name in names:
            __import__(name)
    finally:
        sys.meta_path.remove(recorder)
    return recorder.ready


def _make_row(module: ModuleType, kernels: str, *, shipped: bool) -> tuple[Row, bytes] | None:
    """Return the row of a module and the hash of its source; None for modules not in the bundle.

    `kernels` is the path of the native code. A bundle that is `shipped` (in a wheel) has no modules
    of the interpreter, whose release may be another one.
    """
    from pylink.startup.stripped import compile_stripped

    name, path = module.__name__, module.__file__ or ""
    if path == kernels:
        return (name, "", 0, 0, None), bytes(HASH_SIZE)
    is_own = path.startswith(f"{PACKAGE}/")
    if not path.endswith(".py") or (shipped and not is_own):
        return None
    with open(path, "rb") as stream:  # a compiled module has this time in seconds only
        status = os.fstat(stream.fileno())
        source = stream.read()
    if is_own:
        path = path[len(PACKAGE) + 1 :]
    code = compile_stripped(source, f"pylink/{path}" if is_own else path)
    time_ns = 0 if shipped else status.st_mtime_ns
    return (name, path, len(source), time_ns, code), source_hash(len(source), source)


def _make_bundle(*, shipped: bool = False, kernels: str = "") -> bytes:
    """Return a bundle, with `shipped` one for a wheel. The process must have been started with -S.

    `kernels` is the file name of the native code (default: that which this process has loaded).
    """
    from importlib.util import MAGIC_NUMBER
    from marshal import dumps

    # Started as a file, this module does not find the package. Without -I (setup.py), the path has
    # the module's own directory instead.
    sys.path[:] = [path for path in sys.path if path != HERE]
    sys.path.append(os.path.dirname(PACKAGE))
    module_lists = _import_all(EVERY_LINK), _import_all(SOME_LINKS)
    from pylink._native import OBJECT_PATH

    # Rows with the hashes of their sources.
    pairs, some_pairs = (
        [
            pair
            for module in modules
            if (pair := _make_row(module, OBJECT_PATH, shipped=shipped)) is not None
        ]
        for modules in module_lists
    )
    some_pairs = [pair for pair in some_pairs if pair[0][1]]  # kernels are found without a row
    rows, some_rows = ([row for row, _ in pair_list] for pair_list in (pairs, some_pairs))
    hashes = b"".join(digest for _, digest in pairs + some_pairs)
    with open(f"{HERE}/bootstrap.py", encoding="utf-8") as stream:
        program = stream.read()

    mark = source_hash(0, dumps((rows, some_rows)))
    code = compile(
        f"{program}\n\nstart({mark!r})\n", "pylink/startup/bootstrap.py", "exec", dont_inherit=True
    )
    bundle, later_rows = bytearray(PYC_HEADER_SIZE) + dumps(code), []
    for name, path, size, time_ns, module_code in some_rows:
        later_rows.append((name, path, size, time_ns, len(bundle)))
        bundle += dumps(module_code)
    rows_offset = len(bundle)
    bundle += dumps((rows, later_rows, f"_native/{kernels or os.path.basename(OBJECT_PATH)}"))
    bundle += hashes + mark + rows_offset.to_bytes(OFFSET_SIZE, "little")
    bundle[:4] = MAGIC_NUMBER
    bundle[SIZE_FIELD] = len(bundle).to_bytes(4, "little")
    bundle[4:12] = checksum(bytes(bundle[12:])).to_bytes(8, "little")
    return bytes(bundle)


def state_of(path: str) -> str:
    """Return the state of a bundle: `good`, `stale` or `none`.

    It is `stale` if a source has changed, and `none` without a bundle for this interpreter.
    """
    from importlib.util import MAGIC_NUMBER
    from marshal import loads

    try:
        with open(path, "rb") as stream:
            data = stream.read()
    except OSError:
        return "none"
    if data[:4] != MAGIC_NUMBER or int.from_bytes(data[SIZE_FIELD], "little") != len(data):
        return "none"
    rows, later_rows, _ = loads(data[int.from_bytes(data[-OFFSET_SIZE:], "little") :])
    rows += later_rows
    hashes_end = len(data) - HASH_SIZE - OFFSET_SIZE
    offsets = range(hashes_end - HASH_SIZE * len(rows), hashes_end, HASH_SIZE)
    for offset, (_, name, size, time_ns, _) in zip(offsets, rows, strict=True):
        source_path = os.path.join(PACKAGE, name)
        try:
            status = os.stat(source_path)
            if not name or (status.st_size, status.st_mtime_ns) == (size, time_ns):
                continue
            with open(source_path, "rb") as stream:
                source = stream.read()
        except OSError:
            return "stale"
        if source_hash(len(source), source) != data[offset : offset + HASH_SIZE]:
            return "stale"
    return "good"


def checksum(data: bytes) -> int:
    """Return a checksum of 64 bits, which the launcher computes in the same way.

    The factor is 2**64 divided by the golden ratio: multiplying spreads each bit to higher ones.
    """
    total = 0
    for offset in range(0, len(data), 8):
        total = (total ^ int.from_bytes(data[offset : offset + 8], "little")) * 0x9E3779B97F4A7C15
        total &= 0xFFFFFFFFFFFFFFFF
        total ^= total >> 32
    return total


def _write_bundle(target: str) -> None:
    """Write the bundle to a path or CACHE, atomically; OSError if that fails."""
    bundle = _make_bundle()  # first: what is imported below would count as a module of all links
    if target == CACHE:
        from pylink.startup.usercache import cache_directory, cached_name, write_cached

        directory = cache_directory()
        if directory is None:
            raise PermissionError("this user has no cache")
        write_cached(directory, cached_name(PACKAGE, NAME), bundle)
        return
    from pylink.files.atomic import write_whole

    # A user who can write a bundle can run code with the rights of those who start pylink. So, like
    # compiled modules, it is readable for all who can read the source, and writable for its owner.
    os.umask(~os.stat(__file__).st_mode & 0o666 | 0o022)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    write_whole(target, bundle)


def main(arguments: list[str]) -> int:
    """Write a bundle and return 0, or 1 after a message if it cannot be written.

    Arguments: a path or CACHE (default: where the interpreter keeps compiled modules). For
    setup.py: --ship, a path, and the file name of the native code.
    """
    try:
        if arguments[:1] == ["--ship"]:
            _, path, kernels = arguments
            with open(path, "wb") as stream:
                stream.write(_make_bundle(shipped=True, kernels=kernels))
        else:
            _write_bundle(arguments[0] if arguments else PATH)
    except OSError as error:
        directory = os.path.dirname(PATH) if not arguments else arguments[0]
        reason = error.strerror or str(error)
        # Not `print_error`: as a script, this file finds pylink's other modules only after
        # `_make_bundle` began.
        sys.stderr.write(f"pylink: cannot write the start-up bundle in {directory}: {reason}\n")
        return 1
    return 0


if __name__ == "__main__":
    if not sys.flags.no_site:
        command = [sys.executable, *ISOLATED, os.path.abspath(__file__), *sys.argv[1:]]
        os.execv(sys.executable, command)
    sys.exit(main(sys.argv[1:]))
