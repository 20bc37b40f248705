"""How a process starts from a bundle: `bundle.py` puts its rows behind this code.

The main program of a process that has nothing but the interpreter's own modules (-I -S). It makes
the modules of the rows in their order, in which each comes after those that it imports, so that all
of their imports find what they name. Words: the script to start instead when a source has changed
since, then those of the command line.
"""

import _signal  # type: ignore[import-not-found] # not in typeshed
import sys
from _frozen_importlib import ModuleSpec
from _imp import create_dynamic, exec_dynamic
from gc import disable
from marshal import loads
from posix import execv, stat

# What pylink.command.program does, before the sources are looked at.
if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from pylink.command.bundle import Row


def start(rows: "list[Row]", later: "list[Row]", objects: str, folder: str) -> None:
    """Link as the words say, with the modules of `rows`; `objects` has the kernels.

    Those of `later` are made when they are imported, if they are. `folder` is where the bundle was
    written.
    """
    script = sys.argv.pop(1)
    if not (is_in_place(folder) and fit(rows) and fit(later)):
        execv(sys.executable, [sys.executable, script, *sys.argv[1:]])
    disable()  # a small link makes less garbage than looking for it once costs
    modules = sys.modules
    for name, path, *_ in rows:
        if path:
            module = modules[name] = type(sys)(name)
            module.__file__ = path
            folder, _, file = path.rpartition("/")
            if file == "__init__.py":
                module.__package__, module.__path__ = name, [folder]
            else:
                module.__package__ = name.rpartition(".")[0]
    for name, path, _, _, code in rows:
        if path:
            exec(loads(code), modules[name].__dict__)
        else:
            spec = ModuleSpec(name, None, origin=objects)
            exec_dynamic(modules.setdefault(name, create_dynamic(spec)))
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(modules[parent], last, modules[name])
    Later.rows = {row[0]: row for row in later}
    sys.meta_path[:0] = [Later]
    sys.meta_path.append(modules["pylink.command.sites"].Sites)
    modules["pylink.command.program"].run(bundled=True)


class Later:
    """Finds and makes the modules of `rows`."""

    rows: "dict[str, Row]" = {}  # noqa: RUF012 -- would need typing

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> "ModuleSpec | None":
        if name not in Later.rows:
            return None
        return ModuleSpec(name, Later, origin=Later.rows[name][1])  # type: ignore[arg-type]

    @staticmethod
    def create_module(spec: ModuleSpec) -> None:
        """Leave that to the interpreter."""

    @staticmethod
    def exec_module(module: "ModuleType") -> None:
        _, module.__file__, _, _, code = Later.rows[module.__name__]
        exec(loads(code), module.__dict__)


def is_in_place(folder: str) -> bool:
    """Whether the bundle is where it was made: a copy has the paths of the first one's sources."""
    try:
        made, here = stat(folder), stat(sys.argv[0].rpartition("/")[0])
    except OSError:
        return False
    return made.st_ino == here.st_ino and made.st_dev == here.st_dev


def fit(rows: "list[Row]") -> bool:
    """Whether every source is what it was when its row was made."""
    try:
        for _, path, size, time, _ in rows:
            if path:
                status = stat(path)
                if status.st_size != size or status.st_mtime_ns != time:
                    return False
    except OSError:
        return False
    return True
