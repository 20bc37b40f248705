"""The bundle: one file with the code of all modules that every link imports.

Opening, checking and reading sixty files takes longer than a small link does. The bundle lies where
the interpreter keeps compiled modules, and is good while each source has the size and the time that
it was made of; its code has no docstrings and no annotations. Where there is none that is, the
program starts as any Python script, and makes one for the next time if that may be written.

It begins as a compiled main program, `quickstart.py`, with which src/_native/launcher starts the
interpreter. Behind it stands what that reads: the code of each module that some links import, and
the rows of all modules as one object, so that a name that several modules have is made once. The
last bytes are a mark of the rows, which the main program has as well, and where they begin.

    python -m pylink.command.bundle     # makes it now: for folders that cannot be written later
"""

from __future__ import annotations

import os
import sys
from _frozen_importlib_external import ExtensionFileLoader, SourceFileLoader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import CodeType, ModuleType

    # Name; path, size in bytes and time in ns of the source; code. Kernels have neither path nor
    # code.
    Row = tuple[str, str, int, int, CodeType | None]
    # The same of a module that some links import, with the place of its code in the bundle.
    Later = tuple[str, str, int, int, int]

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.dirname(HERE)
PATH = f"{PACKAGE}/__pycache__/link.{sys.implementation.cache_tag}.pyc"

# What a link imports, and through these; and what one of host objects and archives does besides.
EVERY_LINK = (
    "pylink.command.program",
    "pylink.command.cli",
    "pylink.command.sites",
    "pylink.linker",
    "pylink.options",
)
SOME_LINKS = ("pylink.inputs.unpack", "pylink.inputs.archive", "pylink.inputs.archivethin")

# The interpreter starts with these words, and so without whatever site-packages loads.
ALONE = ("-I", "-S")


def make_for_next() -> None:
    """Make the bundle, where compiled modules may be written, in a process of its own."""
    places = (PACKAGE, os.path.dirname(PATH), PATH)  # each may be another user's
    if sys.dont_write_bytecode or any(
        os.path.lexists(place) and not os.access(place, os.W_OK) for place in places
    ):
        return
    command = [sys.executable, *ALONE, os.path.abspath(__file__)]
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    streams = [(os.POSIX_SPAWN_DUP2, null, stream) for stream in range(3)]
    try:
        os.waitpid(os.posix_spawn(sys.executable, command, os.environ, file_actions=streams), 0)
    except OSError:  # then there is none
        pass
    finally:
        os.close(null)


class Recorder:
    """Notes which modules are loaded from files, in the order in which they are ready."""

    def __init__(self) -> None:
        self.ready: list[ModuleType] = []

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """What the other finders find, with a loader that tells when the module is ready."""
        others = (finder for finder in sys.meta_path if finder is not self)
        specs = (finder.find_spec(name, path, target) for finder in others)  # type: ignore[arg-type]
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and isinstance(spec.loader, (ExtensionFileLoader, SourceFileLoader)):
            run = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                run(module)
                self.ready.append(module)
                sys.meta_path.remove(self)  # another finder may have come before this one
                sys.meta_path.insert(0, self)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def record(names: tuple[str, ...]) -> list[ModuleType]:
    """Import these; all modules that this loads, each after those that it imports."""
    recorder = Recorder()
    sys.meta_path.insert(0, recorder)
    try:
        for name in names:
            __import__(name)
    finally:
        sys.meta_path.remove(recorder)
    return recorder.ready


def row(module: ModuleType, kernels: str) -> Row | None:
    """The row of a module, None of one that the bundle leaves to the interpreter."""
    from pylink.command.lean import compile_lean  # noqa: PLC0415 -- most processes make no bundle

    name, path = module.__name__, module.__file__ or ""
    if path == kernels:
        return name, "", 0, 0, None
    if not path.endswith(".py"):
        return None
    with open(path, "rb") as stream:  # compiled modules know the time of theirs in seconds alone
        status = os.fstat(stream.fileno())
        code = compile_lean(stream.read(), path)
    return name, path, status.st_size, status.st_mtime_ns, code


def write() -> None:
    """Write the bundle, whole or not at all; OSError. For a process with -I -S alone."""
    from _imp import source_hash  # noqa: PLC0415
    from importlib.util import MAGIC_NUMBER  # noqa: PLC0415
    from marshal import dumps  # noqa: PLC0415

    sys.path.append(os.path.dirname(PACKAGE))
    found = record(EVERY_LINK), record(SOME_LINKS)
    from pylink._native import OBJECT  # noqa: PLC0415
    from pylink.outputs.wholefile import write_whole  # noqa: PLC0415

    rows, some = (
        [made for module in modules if (made := row(module, OBJECT)) is not None]
        for modules in found
    )
    with open(f"{HERE}/quickstart.py", encoding="utf-8") as stream:
        program = stream.read()
    folder = os.path.dirname(PATH)

    mark = source_hash(0, dumps((rows, some)))
    code = compile(
        f"{program}\n\nstart({mark!r})\n", f"{HERE}/quickstart.py", "exec", dont_inherit=True
    )
    before, later = bytearray(16) + dumps(code), []
    for name, path, size, time, module in some:
        if path:  # kernels are found without a row
            later.append((name, path, size, time, len(before)))
            before += dumps(module)
    body = dumps((rows, later, OBJECT, folder))
    end = mark + len(before).to_bytes(4, "little")
    length = len(before) + len(body) + len(end)  # the launcher tells a part of a bundle by it
    before[:16] = MAGIC_NUMBER + bytes(8) + length.to_bytes(4, "little")
    # Whoever may write it has others run what they like: as the interpreter's compiled modules, it
    # may be read by who may read the source, and written by nobody else.
    os.umask(~os.stat(__file__).st_mode & 0o666 | 0o022)
    os.makedirs(folder, exist_ok=True)
    write_whole(PATH, bytes(before + body + end))


if __name__ == "__main__":
    if not sys.flags.no_site:
        os.execv(sys.executable, [sys.executable, *ALONE, os.path.abspath(__file__)])
    write()
