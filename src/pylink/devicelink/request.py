"""What one device-link step is asked for, whoever asks: the command line or a call."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.options.table import Value

OBJECT, UNIT, FATBIN, CUBIN = "object", "unit", "fatbin", "cubin"
# The outputs that nobody names, as `a.out` is one.
DEFAULT_OUTPUTS = {
    OBJECT: "a_dlink.o",
    UNIT: "a_dlink.o",
    FATBIN: "a_dlink.fatbin",
    CUBIN: "a_dlink.cubin",
}


class NotOurs(Exception):
    """This step is left to nvcc, because of an option or of an input file."""

    def __init__(self, *, option: str | None = None, file: str | None = None) -> None:
        super().__init__(option, file)
        self.option = option
        self.file = file


class Request:
    """One step.

    `archs` are linked in this order, `inputs` are paths. `values` are options of the links, by the
    attributes of pylink's own table; `libraries` and `library_path` are those of the user. With
    `links_program` the object is for nvcc, which links the program. With `optimizes_host` the
    module ids stand in the order in which an optimizing compiler has them. `named` is what reports
    and depfiles call the result, `options_files` are files that words come from, and `timings` is
    the file of -time.
    """

    __slots__ = (
        "archs",
        "compiler",
        "compress_mode",
        "cudadevrt",
        "debug",
        "form",
        "hides",
        "inputs",
        "libraries",
        "library_path",
        "line_info",
        "links_program",
        "machine",
        "named",
        "optimizes",
        "optimizes_host",
        "options_files",
        "output",
        "threads",
        "timings",
        "values",
        "verbose",
    )

    def __init__(self, archs: list[str], inputs: list[str]) -> None:
        self.archs = archs
        self.inputs = inputs
        self.output: str | None = None
        self.form = OBJECT
        self.libraries: list[str] = []
        self.library_path: list[str] = []
        self.cudadevrt = True
        self.compiler: str | None = None
        self.compress_mode = "default"
        self.debug = False
        self.line_info = False
        self.links_program = False
        self.named: str | None = None
        self.options_files: list[str] = []
        self.timings: str | None = None
        self.machine: str | None = None
        self.optimizes = False
        self.optimizes_host = False
        self.hides = False
        self.verbose = False
        self.threads = 0
        self.values: dict[str, Value] = {}

    @property
    def entry_name(self) -> str:
        """The name of each entry of the fat binary; mostly empty."""
        if self.debug or self.line_info:
            return "".join(f"{name} " for name in self.inputs)
        return "lto" if self.optimizes else ""
