"""The request of one device-link step, from a command line or from a call."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.options.table import Value

# Forms of the output: the host object, a relocatable object (-r), only the fat binary, one cubin.
OBJECT, UNIT, FATBIN, CUBIN = "object", "unit", "fatbin", "cubin"
# Names of outputs without -o.
DEFAULT_OUTPUTS = {
    OBJECT: "a_dlink.o",
    UNIT: "a_dlink.o",
    FATBIN: "a_dlink.fatbin",
    CUBIN: "a_dlink.cubin",
}


class LeftToNvcc(Exception):
    """Only nvcc can do this step, because of an option or of an input file."""

    def __init__(self, *, option: str | None = None, file: str | None = None) -> None:
        super().__init__(option, file)
        self.option = option
        self.file = file


class Request:
    """A device-link step as its command line requests it.

    * `archs`: the architectures, in the order of the links.
    * `compiler`: path of the host compiler, or of its directory; None if it is not named.
    * `compress_mode`: name of the mode of compression, such as default.
    * `cudadevrt`: whether to link the toolkit's library libcudadevrt.
    * `debug`, `line_info`, `optimizes`, `verbose`: -G, -lineinfo, -dlto, -v.
    * `form`: the form of the output, such as OBJECT.
    * `hides`: functions of the object have hidden visibility.
    * `inputs`: paths.
    * `libraries`, `library_path`: the values of -l and of -L.
    * `links_program`: after the step, nvcc links a program with its object.
    * `machine`: -cpu-arch name for a step without host objects; None for the compiler's.
    * `optimizes_host`: module ids are in reverse order, like those of an optimizing compiler.
    * `options_files`: files with arguments.
    * `output`: path; None if nothing is written.
    * `report_name`: the name of the result in reports and depfiles; None for `output`.
    * `threads`: number of links that run at once; 0 for one for each core.
    * `timings`: the file of -time.
    * `values`: options of the links, by the attributes of pylink's own table.
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
        "optimizes",
        "optimizes_host",
        "options_files",
        "output",
        "report_name",
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
        self.report_name: str | None = None
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
        """The name of each entry of the fat binary.

        With -G or -lineinfo, it is the names of the inputs; else `lto` with -dlto, empty without.
        """
        if self.debug or self.line_info:
            return "".join(f"{name} " for name in self.inputs)
        return "lto" if self.optimizes else ""
