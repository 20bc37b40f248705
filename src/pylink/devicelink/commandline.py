"""From words in nvcc's spelling to a request. What only nvcc can do or refuse is NotOurs."""

from __future__ import annotations

import os

from pylink.devicelink.architectures import find_architectures
from pylink.devicelink.compression import MODES
from pylink.devicelink.nvccoptions import (
    ENDS,
    HOST_DEFAULT,
    HOST_EXCEPT,
    HOST_HIDDEN,
    HOST_PREFIXES,
    HOST_WORDS,
    JOINED,
    LEFT,
    LINKED,
    SPELLINGS,
    is_library,
)
from pylink.devicelink.request import CUBIN, DEFAULT_OUTPUTS, FATBIN, OBJECT, UNIT, NotOurs, Request
from pylink.diagnostics import Sink
from pylink.diagnostics.errors import LinkError
from pylink.options.file import split_items, split_words
from pylink.options.parse import VARIABLE, parse
from pylink.options.table import FLAG, LIST, NUMBER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pylink.devicelink.nvccoptions import NvccOption

PREPEND, APPEND = "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"
MAX_FILES = 1000  # options files of one command, also those that name each other


class Words:
    """What the words say: lists and texts by attribute of the rows, flags, inputs."""

    __slots__ = ("as_nvcc", "files", "flags", "inputs", "lists", "texts", "unknown")

    def __init__(self, *, as_nvcc: bool) -> None:
        self.as_nvcc = as_nvcc
        self.flags: set[str] = set()
        self.texts: dict[str, str] = {}
        self.lists: dict[str, list[str]] = {}
        self.inputs: list[str] = []
        self.unknown: list[str] = []
        self.files: list[str] = []

    def items(self, attribute: str) -> list[str]:
        return self.lists.get(attribute, [])


def read_request(
    argv: Sequence[str], environment: Mapping[str, str], *, as_nvcc: bool = False
) -> Request:
    """The request that these words make with the variables of nvcc.

    With `as_nvcc` they need not be of a step: without -dlink, and with objects alone, they are
    those of a program, and the step is a part of its link.
    """
    sink = Sink()
    parsed = Words(as_nvcc=as_nvcc)
    try:
        before = split_words(environment.get(PREPEND, ""), sink)
        after = split_words(environment.get(APPEND, ""), sink)
        _read(before, parsed, sink)
        extra = len(parsed.inputs)
        _read(argv, parsed, sink)
        _read(after, parsed, sink)
        request = _request(parsed, environment)
        if as_nvcc and "device_link" not in parsed.flags:
            # Its own object comes first among those of the program.
            if extra:
                raise NotOurs(file=parsed.inputs[0])
            for ends in ENDS:
                if ends.replace("-", "_") in parsed.flags:
                    raise NotOurs(option=f"--{ends}")
            request.links_program = True
            request.named = parsed.texts.get("output_file", "a.out")
        return request
    except LinkError:
        raise NotOurs(option=argv[0] if argv else "") from None


def _read(argv: Sequence[str], parsed: Words, sink: Sink) -> None:
    rest = iter(argv)
    for word in rest:
        if not word.startswith("-"):
            if not word.endswith(LINKED) and (parsed.as_nvcc or not is_library(word)):
                raise NotOurs(file=word)
            parsed.inputs.append(word)
            continue
        row, spelling, argument = _recognize(word)
        if row is None:
            parsed.unknown.append(word)
            continue
        if row.use == LEFT or (row.takes == FLAG and argument is not None):
            raise NotOurs(option=word)
        if row.takes == FLAG:
            parsed.flags.add(row.attribute)
            continue
        if argument is None:
            argument = next(rest, None)
            if argument is None:
                raise NotOurs(option=word)
        if row.takes == NUMBER:
            read_number(argument, spelling)
        _take(row, spelling, argument, parsed, sink)


def _take(row: NvccOption, spelling: str, argument: str, parsed: Words, sink: Sink) -> None:
    """Take the argument of an option."""
    if row.attribute == "options_file":
        for file in split_items(argument, sink):
            _read_file(file, parsed, sink)
    elif row.attribute == "generate_code":  # its commas belong to it
        parsed.lists.setdefault(row.attribute, []).append(argument)
    elif row.takes == LIST:
        parsed.lists.setdefault(row.attribute, []).extend(split_items(argument, sink))
    else:
        if parsed.texts.setdefault(row.attribute, argument) != argument:
            raise NotOurs(option=spelling)  # nvcc has a warning for that
        if row.values and argument not in row.values:
            raise NotOurs(option=f"{spelling}={argument}")


def _recognize(word: str) -> tuple[NvccOption | None, str, str | None]:
    """The row of a word, how it is spelled, and its argument if that is part of the word."""
    spelling, equals, argument = word.partition("=")
    row = SPELLINGS.get(spelling)
    if row is not None:
        return row, spelling, argument if equals else None
    row = JOINED.get(word[:2])
    return row, word[:2], word[2:]


def _read_file(file: str, parsed: Words, sink: Sink) -> None:
    parsed.files.append(file)
    try:
        with open(file, encoding="utf-8", errors="surrogateescape") as stream:
            text = stream.read()
    except (OSError, ValueError):
        raise NotOurs(file=file) from None
    if len(parsed.files) > MAX_FILES:
        raise NotOurs(file=file)
    _read(split_words(text, sink), parsed, sink)


def _request(parsed: Words, environment: Mapping[str, str]) -> Request:
    flags, texts = parsed.flags, parsed.texts
    if not parsed.inputs:
        raise NotOurs(option="-dlink")
    if parsed.unknown and "forward_unknown_to_host_compiler" not in flags:
        raise NotOurs(option=parsed.unknown[0])
    if {"fatbin", "cubin"} <= flags:
        raise NotOurs(option="-cubin")
    archs = find_architectures(
        texts.get("gpu_architecture"), parsed.items("gpu_code"), parsed.items("generate_code")
    )
    request = Request(archs, parsed.inputs)
    request.form = FATBIN if "fatbin" in flags else CUBIN if "cubin" in flags else OBJECT
    if "relocatable_link" in flags:
        if request.form != OBJECT or "dlink_time_opt" in flags:
            raise NotOurs(option="-r")
        request.form = UNIT
        request.values["relocatable_link"] = True
    if request.form == CUBIN:
        del request.archs[1:]
    request.output = texts.get("output_file") or default_output(
        request.form, texts.get("output_directory")
    )
    request.libraries = parsed.items("library")
    request.library_path = parsed.items("library_path")
    request.cudadevrt = texts.get("cudadevrt") != "none"
    request.compiler = texts.get("compiler_bindir") or os.environ.get("NVCC_CCBIN")
    request.debug = "device_debug" in flags
    request.line_info = "generate_line_info" in flags
    if request.debug and request.line_info:  # of which nvcc warns
        raise NotOurs(option="-lineinfo")
    request.optimizes = "dlink_time_opt" in flags
    request.verbose = "verbose" in flags
    request.compress_mode = "none" if "no_compress" in flags else texts.get("compress_mode", "")
    request.compress_mode = request.compress_mode or "default"
    if request.compress_mode not in MODES:
        raise NotOurs(option="-compress-mode")
    request.threads = read_number(texts.get("threads", "0"), "-t")
    host_words = split_host_words([*parsed.items("compiler_options"), *parsed.unknown])
    request.hides = _hides(host_words)
    levels = [texts.get("optimize", "0"), *(word[2:] for word in host_words if word[:2] == "-O")]
    request.optimizes_host = levels[-1] != "0"
    _take_link_options(request, parsed, environment.get(VARIABLE, ""))
    request.named = request.output
    request.options_files = parsed.files
    request.timings = texts.get("time")
    return request


def default_output(form: str, directory: str | None) -> str:
    """The name of an output that nobody named; the directory is for objects alone."""
    name = DEFAULT_OUTPUTS[form]
    return os.path.join(directory, name) if directory and form in (OBJECT, UNIT) else name


def _take_link_options(request: Request, parsed: Words, environment: str) -> None:
    """Options of the links by themselves: those of nvcc, and words of -Xnvlink.

    `environment` has words of pylink's own variable, as for any other link.
    """
    flags, values = parsed.flags, request.values
    early = Sink()
    line = parse(parsed.items("nvlink_options"), early, environment=environment)
    if early.diagnostics or line.inputs or line.files:
        raise NotOurs(option="-Xnvlink")
    values.update(line.values)
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
        if "time" in parsed.texts:  # of the compilers
            values["time"] = parsed.texts["time"]
        if parsed.items("ptxas_options"):
            values["Xptxas"] = (" ".join(parsed.items("ptxas_options")) + " ",)
        if "split_compile" in parsed.texts:
            values["split_compile"] = read_number(parsed.texts["split_compile"], "-split-compile")


def split_host_words(argv: Sequence[str]) -> list[str]:
    """Words for the compiler of the host, which may have been quoted together."""
    return [part for text in argv for part in text.strip("'\"").split()]


def _hides(argv: Sequence[str]) -> bool:
    """Whether words for the compiler of the host hide the functions of the object."""
    hides = False
    for word in argv:
        if word in (HOST_HIDDEN, HOST_DEFAULT):
            hides = word == HOST_HIDDEN
        elif word.startswith(HOST_EXCEPT) or not (
            word in HOST_WORDS or word.startswith(HOST_PREFIXES)
        ):
            raise NotOurs(option=f"-Xcompiler {word}")
    return hides


def read_number(text: str, option: str) -> int:
    """A number of few digits; NotOurs for all else."""
    if not (text.isascii() and text.isdigit() and len(text) < 6):
        raise NotOurs(option=option)
    return int(text)
