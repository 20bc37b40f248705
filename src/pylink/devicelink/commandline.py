"""Reads a request from a command line of nvcc.

Functions raise LeftToNvcc if nvcc must do the step, or show its own warning or error.
"""

from __future__ import annotations

import os

from pylink.devicelink.architectures import find_architectures
from pylink.devicelink.compression import MODES
from pylink.devicelink.nvccoptions import (
    HOST_DEFAULT,
    HOST_EXCEPT,
    HOST_HIDDEN,
    HOST_PREFIXES,
    HOST_WORDS,
    JOINED,
    LEFT,
    LINKED_EXTENSIONS,
    OTHER_OUTPUTS,
    SPELLINGS,
    is_library,
)
from pylink.devicelink.request import (
    CUBIN,
    DEFAULT_OUTPUTS,
    FATBIN,
    OBJECT,
    UNIT,
    LeftToNvcc,
    Request,
)
from pylink.diagnostics import Sink
from pylink.diagnostics.errors import LinkError
from pylink.options.file import split_arguments, split_items
from pylink.options.parse import OPTIONS_VARIABLE, parse
from pylink.options.table import FLAG, LIST, NUMBER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pylink.devicelink.nvccoptions import NvccOption

# Environment variables with arguments that nvcc adds before and after those of its command line.
PREPEND, APPEND = "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"
# The most options files of one command, which may name each other; one with more is left to nvcc.
MAX_FILES = 1000


class ParsedArguments:
    """The parsed arguments.

    `flags`, `texts` and `lists` have the options without a value, with one and with several, by the
    attribute of their row in the table of options. `inputs` are paths. `unknown` has the options
    without a row, which may be for the host compiler. `options_files` are the paths of the files
    whose arguments were read. With `as_nvcc` the arguments may be any command line of nvcc.
    """

    __slots__ = ("as_nvcc", "flags", "inputs", "lists", "options_files", "texts", "unknown")

    def __init__(self, *, as_nvcc: bool) -> None:
        self.as_nvcc = as_nvcc
        self.flags: set[str] = set()
        self.texts: dict[str, str] = {}
        self.lists: dict[str, list[str]] = {}
        self.inputs: list[str] = []
        self.unknown: list[str] = []
        self.options_files: list[str] = []

    def items(self, attribute: str) -> list[str]:
        """Return the values of an option that takes several; empty without the option."""
        return self.lists.get(attribute, [])


def read_request(
    argv: Sequence[str], environment: Mapping[str, str], *, as_nvcc: bool = False
) -> Request:
    """Return the device-link step that these arguments and nvcc's environment variables request.

    LeftToNvcc if only nvcc can do it. With `as_nvcc` a command line without -dlink whose inputs are
    all objects or libraries links a program, and the step is a part of that.
    """
    sink = Sink()
    parsed = ParsedArguments(as_nvcc=as_nvcc)
    try:
        prepended = split_arguments(environment.get(PREPEND, ""), sink)
        appended = split_arguments(environment.get(APPEND, ""), sink)
        _read_arguments(prepended, parsed, sink)
        has_prepended_inputs = bool(parsed.inputs)
        _read_arguments(argv, parsed, sink)
        _read_arguments(appended, parsed, sink)
        request = _make_request(parsed, environment)
        if as_nvcc and "device_link" not in parsed.flags:
            # The step's object must be the first input of the program, but nvcc would put inputs of
            # NVCC_PREPEND_FLAGS in front of it.
            if has_prepended_inputs:
                raise LeftToNvcc(file=parsed.inputs[0])
            for option in OTHER_OUTPUTS:
                if option.replace("-", "_") in parsed.flags:
                    raise LeftToNvcc(option=f"--{option}")
            request.links_program = True
            request.report_name = parsed.texts.get("output_file", "a.out")
        return request
    except LinkError:
        raise LeftToNvcc(option=argv[0] if argv else "") from None


def _read_arguments(argv: Sequence[str], parsed: ParsedArguments, sink: Sink) -> None:
    """Add arguments to the parsed ones."""
    remaining = iter(argv)
    for word in remaining:
        if not word.startswith("-"):
            if not word.endswith(LINKED_EXTENSIONS) and (parsed.as_nvcc or not is_library(word)):
                raise LeftToNvcc(file=word)
            parsed.inputs.append(word)
            continue
        row, spelling, argument = _recognize(word)
        if row is None:
            parsed.unknown.append(word)
            continue
        if row.use == LEFT or (row.takes == FLAG and argument is not None):
            raise LeftToNvcc(option=word)
        if row.takes == FLAG:
            parsed.flags.add(row.attribute)
            continue
        if argument is None:
            argument = next(remaining, None)
            if argument is None:
                raise LeftToNvcc(option=word)
        if row.takes == NUMBER:
            _read_number(argument, spelling)
        _set_argument(row, spelling, argument, parsed, sink)


def _set_argument(
    row: NvccOption, spelling: str, argument: str, parsed: ParsedArguments, sink: Sink
) -> None:
    """Store the argument of an option."""
    if row.attribute == "options_file":
        for file in split_items(argument, sink):
            _read_options_file(file, parsed, sink)
    elif row.attribute == "generate_code":  # its commas do not separate items
        parsed.lists.setdefault(row.attribute, []).append(argument)
    elif row.takes == LIST:
        parsed.lists.setdefault(row.attribute, []).extend(split_items(argument, sink))
    else:
        if parsed.texts.setdefault(row.attribute, argument) != argument:
            raise LeftToNvcc(option=spelling)  # nvcc warns of different values
        if row.values and argument not in row.values:
            raise LeftToNvcc(option=f"{spelling}={argument}")


def _recognize(word: str) -> tuple[NvccOption | None, str, str | None]:
    """Return the row of an option, its spelling, and its argument if it is part of the same word.

    The row is None for an option that the table lacks.
    """
    spelling, equals, argument = word.partition("=")
    row = SPELLINGS.get(spelling)
    if row is not None:
        return row, spelling, argument if equals else None
    row = JOINED.get(word[:2])
    return row, word[:2], word[2:]


def _read_options_file(file: str, parsed: ParsedArguments, sink: Sink) -> None:
    """Add the arguments in an options file to the parsed ones."""
    parsed.options_files.append(file)
    try:
        with open(file, encoding="utf-8", errors="surrogateescape") as stream:
            text = stream.read()
    except (OSError, ValueError):
        raise LeftToNvcc(file=file) from None
    if len(parsed.options_files) > MAX_FILES:
        raise LeftToNvcc(file=file)
    _read_arguments(split_arguments(text, sink), parsed, sink)


def _make_request(parsed: ParsedArguments, environment: Mapping[str, str]) -> Request:
    """Return the request that the parsed arguments state.

    `environment` is asked for pylink's own variable and for NVCC_CCBIN.
    """
    flags, texts = parsed.flags, parsed.texts
    if not parsed.inputs:
        raise LeftToNvcc(option="-dlink")
    if parsed.unknown and "forward_unknown_to_host_compiler" not in flags:
        raise LeftToNvcc(option=parsed.unknown[0])
    if {"fatbin", "cubin"} <= flags:
        raise LeftToNvcc(option="-cubin")
    archs = find_architectures(
        texts.get("gpu_architecture"), parsed.items("gpu_code"), parsed.items("generate_code")
    )
    request = Request(archs, parsed.inputs)
    request.form = FATBIN if "fatbin" in flags else CUBIN if "cubin" in flags else OBJECT
    if "relocatable_link" in flags:
        if request.form != OBJECT or "dlink_time_opt" in flags:
            raise LeftToNvcc(option="-r")
        request.form = UNIT
        request.values["relocatable_link"] = True
    if request.form == CUBIN:
        del request.archs[1:]
    request.output = texts.get("output_file") or _default_output(
        request.form, texts.get("output_directory")
    )
    request.libraries = parsed.items("library")
    request.library_path = parsed.items("library_path")
    request.cudadevrt = texts.get("cudadevrt") != "none"
    request.compiler = texts.get("compiler_bindir") or environment.get("NVCC_CCBIN")
    request.debug = "device_debug" in flags
    request.line_info = "generate_line_info" in flags
    if request.debug and request.line_info:  # nvcc warns of the two together
        raise LeftToNvcc(option="-lineinfo")
    request.optimizes = "dlink_time_opt" in flags
    request.verbose = "verbose" in flags
    request.compress_mode = "none" if "no_compress" in flags else texts.get("compress_mode", "")
    request.compress_mode = request.compress_mode or "default"
    if request.compress_mode not in MODES:
        raise LeftToNvcc(option="-compress-mode")
    request.threads = _read_number(texts.get("threads", "0"), "-t")
    host_words = _split_host_words([*parsed.items("compiler_options"), *parsed.unknown])
    request.hides = _hides_functions(host_words)
    levels = [texts.get("optimize", "0"), *(word[2:] for word in host_words if word[:2] == "-O")]
    request.optimizes_host = levels[-1] != "0"
    _set_link_options(request, parsed, environment.get(OPTIONS_VARIABLE, ""))
    request.report_name = request.output
    request.options_files = parsed.options_files
    request.timings = texts.get("time")
    return request


def _default_output(form: str, directory: str | None) -> str:
    """Return the path of the output if -o does not name it.

    Only objects are written to `directory`, that of -odir.
    """
    name = DEFAULT_OUTPUTS[form]
    return os.path.join(directory, name) if directory and form in (OBJECT, UNIT) else name


def _set_link_options(request: Request, parsed: ParsedArguments, environment: str) -> None:
    """Set the options of the links from nvcc's options, among them the arguments of -Xnvlink.

    `environment` is the value of pylink's own environment variable, which has options of links.
    """
    flags, values = parsed.flags, request.values
    sink = Sink()  # its messages are not shown: nvcc starts nvlink, which shows its own
    line = parse(parsed.items("nvlink_options"), sink, environment=environment)
    if sink.diagnostics or line.inputs or line.files:
        raise LeftToNvcc(option="-Xnvlink")
    values.update(line.values)
    # Options of nvcc, and the options of links that they set.
    for flag, attribute in (
        ("disable_warnings", "disable_warnings"),
        ("resource_usage", "verbose"),
        ("shared", "shared"),
        ("device_debug", "debug"),
        ("dlink_time_opt", "dlto"),
    ):
        if flag in flags:
            values[attribute] = True
    if "all-warnings" in parsed.items("Werror"):
        values["warning_as_error"] = True
    if request.optimizes:
        if "time" in parsed.texts:  # the compilers that each link runs add their times
            values["time"] = parsed.texts["time"]
        if parsed.items("ptxas_options"):
            values["Xptxas"] = (" ".join(parsed.items("ptxas_options")) + " ",)
        if "split_compile" in parsed.texts:
            values["split_compile"] = _read_number(parsed.texts["split_compile"], "-split-compile")


def _split_host_words(argv: Sequence[str]) -> list[str]:
    """Return the options for the host compiler one by one: an argument may quote several."""
    return [part for text in argv for part in text.strip("'\"").split()]


def _hides_functions(argv: Sequence[str]) -> bool:
    """Return whether options for the host compiler hide the functions of the object.

    The last one about visibility counts. LeftToNvcc if one may change the object in another way.
    """
    hides = False
    for word in argv:
        if word in (HOST_HIDDEN, HOST_DEFAULT):
            hides = word == HOST_HIDDEN
        elif word.startswith(HOST_EXCEPT) or not (
            word in HOST_WORDS or word.startswith(HOST_PREFIXES)
        ):
            raise LeftToNvcc(option=f"-Xcompiler {word}")
    return hides


def _read_number(text: str, option: str) -> int:
    """Return a number of up to five digits, an argument of `option`; LeftToNvcc for other texts."""
    if not (text.isascii() and text.isdigit() and len(text) < 6):
        raise LeftToNvcc(option=option)
    return int(text)
