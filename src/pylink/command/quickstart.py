"""How a process starts from a bundle: `bundle.py` has its layout.

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
from posix import O_RDONLY, close, execv, fstat, open, read, stat

# What pylink.command.program does, before the sources are looked at.
if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from pylink.command.bundle import Later, Row

# The kernel that looks at sources.
CHECKER = "pylink._native.inputfiles"
END = 12  # bytes behind the rows: their mark, and where they begin


def start(mark: bytes) -> None:
    """Link as the words say, with the modules of the bundle whose rows have this mark."""
    script = sys.argv.pop(1)
    disable()  # a small link makes less garbage than looking for it once costs
    contents = load(mark)
    if contents is None:
        execv(sys.executable, [sys.executable, script, *sys.argv[1:]])
    rows, later, objects, bundle = contents
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
    for name, _, _, _, code in rows:
        if code is not None:
            exec(code, modules[name].__dict__)
        elif name not in modules:
            spec = ModuleSpec(name, None, origin=objects)
            exec_dynamic(modules.setdefault(name, create_dynamic(spec)))
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(modules[parent], last, modules[name])
    sys.meta_path[:0] = [Finder({row[0]: row for row in later}, bundle)]
    sys.meta_path.append(modules["pylink.command.sites"].Sites)
    modules["pylink.command.program"].run(bundled=True)


def load(mark: bytes) -> "tuple[list[Row], list[Later], str, memoryview] | None":
    """The rows, those for later, the object with the kernels, and the bundle.

    None when a source has changed, or another bundle has taken the place of this one.
    """
    try:
        file = open(sys.argv[0], O_RDONLY)
        # At once: the interpreter itself reads large files in small parts.
        bundle = memoryview(read(file, fstat(file).st_size))
        close(file)
    except OSError:
        return None
    if bundle[-END:-4] != mark:
        return None
    rows, later, objects, folder = loads(bundle[int.from_bytes(bundle[-4:], "little") :])
    good = is_in_place(folder) and are_current(rows, later, objects)
    return (rows, later, objects, bundle) if good else None


class Finder:
    """Finds and makes the modules of `rows`, whose code is in the bundle."""

    def __init__(self, rows: "dict[str, Later]", bundle: memoryview) -> None:
        self.rows = rows
        self.bundle = bundle

    def find_spec(
        self, name: str, path: object = None, target: object = None
    ) -> "ModuleSpec | None":
        if name not in self.rows:
            return None
        return ModuleSpec(name, self, origin=self.rows[name][1])  # type: ignore[arg-type]

    @staticmethod
    def create_module(spec: ModuleSpec) -> None:
        """Leave that to the interpreter."""

    def exec_module(self, module: "ModuleType") -> None:
        _, module.__file__, _, _, place = self.rows[module.__name__]
        exec(loads(self.bundle[place:]), module.__dict__)


def is_in_place(folder: str) -> bool:
    """Whether the bundle is where it was made: a copy has the paths of the first one's sources."""
    try:
        made, here = stat(folder), stat(sys.argv[0].rpartition("/")[0])
    except OSError:
        return False
    return made.st_ino == here.st_ino and made.st_dev == here.st_dev


def are_current(rows: "list[Row]", later: "list[Later]", objects: str) -> bool:
    """Whether every source is what it was when its row was made; a kernel is faster at that."""
    spec = ModuleSpec(CHECKER, None, origin=objects)
    try:
        kernel = sys.modules[CHECKER] = create_dynamic(spec)
        exec_dynamic(kernel)
        unchanged = kernel.are_unchanged
    except (ImportError, AttributeError):  # that of another version
        return False
    return bool(unchanged(rows) and unchanged(later))
