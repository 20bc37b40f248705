"""One handle of nvJitLink: collects inputs, which pylink links if nothing must be compiled.

As soon as an option is unknown, an input needs a compiler, or the link fails with FORWARDED_ERRORS
only, the handle and its inputs are forwarded to the real library. Result codes and logs are those
of nvJitLink 13.0: a refused input is dropped, and the link goes on without it.
"""

from __future__ import annotations

import ctypes
import io
import os
import time

from pylink.diagnostics import DISCRETIONARY, Sink
from pylink.diagnostics.errors import LinkError
from pylink.diagnostics.nvlink import NvlinkRenderer
from pylink.facts import inputkinds
from pylink.facts.objectformats import E_FLAGS, sm_of_cubin
from pylink.facts.target import Target
from pylink.files.reading import read_incoming
from pylink.inputs import kinds
from pylink.jitlink.options import parse_options
from pylink.jitlink.real import (
    INCORRECT_INPUT_TYPE,
    INTERNAL,
    INVALID_INPUT,
    MISSING_ARCH,
    SUCCESS,
    UNRECOGNIZED_INPUT,
)
from pylink.linker import run_link
from pylink.options.model import Input
from pylink.options.plan import OutputPlan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.diagnostics.record import Diagnostic
    from pylink.jitlink.real import Real, RealHandle
    from pylink.options.table import Value

ANY = 10  # NVJITLINK_INPUT_ANY
# By number of nvJitLinkInputType in nvJitLink.h: its name there, and the kinds of files that it
# accepts.
INPUT_TYPES = {
    1: ("CUBIN", (inputkinds.CUBIN,)),
    2: ("PTX", (inputkinds.PTX,)),
    3: ("LTOIR", (inputkinds.LTOIR,)),
    4: ("FATBIN", (inputkinds.FATBIN,)),
    5: ("OBJECT", (inputkinds.HOST, inputkinds.CUBIN)),
    6: ("LIBRARY", (inputkinds.ARCHIVE, inputkinds.THIN_ARCHIVE)),
    7: ("INDEX", ()),
    ANY: (
        "ANY",
        (
            inputkinds.CUBIN,
            inputkinds.HOST,
            inputkinds.FATBIN,
            inputkinds.ARCHIVE,
            inputkinds.THIN_ARCHIVE,
            inputkinds.PTX,
            inputkinds.LTOIR,
        ),
    ),
}
# Kinds of files that only the real library can link, since it compiles them.
COMPILED_KINDS = (inputkinds.PTX, inputkinds.LTOIR)

# Options of every link, with which pylink does what the real library always does.
FIXED_OPTIONS: dict[str, Value] = {
    "allow_empty": True,
    "ignore_host_info": True,
    "merc_dedup": "off",
}

# Errors at which the real library does not stop, so that the link is forwarded to it: it compiles,
# and if definitions, sizes, memory spaces or managed attributes conflict, it keeps the first and
# reports that. merge-failed follows such a conflict.
FORWARDED_ERRORS = {
    "needs-compiler", "multiple-definition", "size-mismatch", "common-too-large", "space-mismatch",
    "managed-mismatch", "merge-failed",
}  # fmt: skip

# Results that are logs.
LOGS = ("ErrorLog", "InfoLog")


class Handle:
    """A handle of nvJitLink; public methods return nvJitLinkResult numbers, `get_size` also a size.

    `created` is the result that nvJitLinkCreate returns. `real` is NVIDIA's library, to which links
    that pylink cannot do are forwarded.
    """

    def __init__(self, options: Sequence[bytes], real: Real) -> None:
        self._start_time = time.perf_counter()
        self._option_texts = list(options)
        self._real = real
        self._inputs: list[tuple[int, Input]] = []  # each with its number of nvJitLinkInputType
        self._errors = self._info = b""  # the logs
        self._image: bytes | None = None  # the linked cubin
        # The real library's handle, once this one is forwarded to it.
        self._forwarded: RealHandle | None = None
        self.created = SUCCESS
        # None if only the real library can handle the options, or if it is needed and missing.
        self._settings = parse_options(os.fsdecode(word) for word in options)
        if self._settings is None:
            if not any(word.startswith(b"-arch=") for word in options):
                self.created = MISSING_ARCH
            else:
                self.created = self._forward()
        else:
            self._target = Target(str(self._settings.values["arch"]))

    def add_data(self, kind: int, data: bytes, name: bytes | None) -> int:
        """Add contents as an input of the nvJitLinkInputType `kind`."""
        if self._forwarded is not None:
            return self._forwarded.add_data(kind, data, name)
        return self._add(kind, os.fsdecode(name or b""), data)

    def add_file(self, kind: int, name: bytes) -> int:
        """Add a file as an input of the nvJitLinkInputType `kind`."""
        if self._forwarded is not None:
            return self._forwarded.add_file(kind, name)
        path = os.fsdecode(name)
        try:
            data = read_incoming(path)
        except OSError:
            return self._refuse(INVALID_INPUT, f"no such file: {path}\n")
        return self._add(kind, path, data)

    def complete(self) -> int:
        """Link the inputs; if all errors are FORWARDED_ERRORS, the real library links them instead.

        Without that library, they are errors like others.
        """
        if self._forwarded is not None:
            return self._forwarded.complete()
        if self._settings is None or self._image is not None:
            return INTERNAL
        start = time.perf_counter()
        logs = _Logs()
        sink = Sink(logs)
        values = {**self._settings.values, **FIXED_OPTIONS}
        try:
            inputs = [source for _, source in self._inputs]
            plan = OutputPlan(values, (), sink)
            image = run_link(values, inputs, plan, sink, compiles=False).image
            assert isinstance(image, bytes)  # no file was asked for
            self._image = image
        except LinkError as error:
            kinds_found = {
                diagnostic.kind
                for diagnostic in error.diagnostics
                if diagnostic.level >= DISCRETIONARY
            }
            if kinds_found <= FORWARDED_ERRORS and self._real.is_available():
                return self._forward() or self.complete()
        finally:
            sink.close()
        if self._settings.reports_time:
            before, during = start - self._start_time, time.perf_counter() - start
            self._info += f"nvJitLink time until Complete: {1000 * before:f}\n".encode()
            self._info += f"nvJitLinkComplete time to finish: {1000 * during:f}\n".encode()
        self._info += logs.info
        self._errors += logs.errors
        return SUCCESS if self._image is not None else self._refuse(INTERNAL, "ERROR 9: finish\n")

    def get_size(self, result_name: str) -> tuple[int, int]:
        """Return the result code, and the size of one of `real.RESULTS`.

        The size of a log that is not empty includes a NUL.
        """
        if self._forwarded is not None:
            return self._forwarded.get_size(result_name)
        result = self._find_result(result_name)
        if result is None:
            return (INTERNAL if result_name == "LinkedCubin" else INVALID_INPUT), 0
        return SUCCESS, len(result) + (result != b"" and result_name in LOGS)

    def get(self, result_name: str, address: int) -> int:
        """Write one of `real.RESULTS`, a log with a NUL, to an address with room for it.

        An empty log has a NUL, too, although `get_size` returns 0: the real library does the same.
        """
        if self._forwarded is not None:
            return self._forwarded.get(result_name, address)
        result = self._find_result(result_name)
        if result is None:
            return INTERNAL if result_name == "LinkedCubin" else INVALID_INPUT
        if result_name in LOGS:
            result += b"\0"
        ctypes.memmove(address, result, len(result))
        return SUCCESS

    def destroy(self) -> int:
        """Destroy the real library's handle, if there is one."""
        return SUCCESS if self._forwarded is None else self._forwarded.destroy()

    def _add(self, kind: int, name: str, data: bytes) -> int:
        """Add contents of the nvJitLinkInputType `kind`, or forward; return the result."""
        label, takes = INPUT_TYPES.get(kind, ("", ()))
        if not data:
            return INVALID_INPUT
        if not label:
            return self._refuse(INCORRECT_INPUT_TYPE, f"unsupported input type: {name}\n")
        if self._settings is None or self._image is not None:
            return self._refuse(INTERNAL, f"ERROR 1: empty elfw when adding cubin{name}\n")
        input_kind = kinds.kind_of(data)
        if input_kind not in takes:
            if kind == ANY:
                return self._refuse(UNRECOGNIZED_INPUT, f"unrecognized input type: {name}\n")
            text = f"ERROR 1: bad input: does not match type NVJITLINK_INPUT_{label}{name}\n"
            return self._refuse(INCORRECT_INPUT_TYPE, text)
        if input_kind in COMPILED_KINDS:
            result = self._forward()
            return result or self.add_data(kind, data, os.fsencode(name))
        if input_kind == inputkinds.CUBIN and not self._target_accepts(data):
            return self._refuse(INVALID_INPUT, f"ERROR 4: bad input:{name}\n")
        self._inputs.append((kind, Input(name or f"<input {len(self._inputs)}>", data)))
        return SUCCESS

    def _target_accepts(self, data: bytes) -> bool:
        """Return whether a cubin can be linked for the target, by its header only.

        True for a truncated header. The link checks more.
        """
        has_flags = len(data) >= E_FLAGS.stop
        return not has_flags or self._target.accepts_cubin(sm_of_cubin(data), specific=False)

    def _forward(self) -> int:
        """Forward the handle to the real library; return the library's first error, or SUCCESS.

        No input is added after an error. INTERNAL if the library is not installed.
        """
        try:
            result, self._forwarded = self._real.create(self._option_texts)
        except OSError as error:
            self._settings = None
            return self._refuse(INTERNAL, f"{error}\n")
        for kind, source in self._inputs:
            assert source.data is not None
            result = result or self._forwarded.add_data(kind, source.data, os.fsencode(source.name))
        self._inputs.clear()
        return result

    def _refuse(self, result: int, text: str) -> int:
        """Add a text to the error log, and return `result`."""
        self._errors += os.fsencode(text)
        return result

    def _find_result(self, result_name: str) -> bytes | None:
        """Return the bytes of one of `real.RESULTS`; None if this handle has none."""
        if result_name == "LinkedCubin":
            return self._image
        return {"ErrorLog": self._errors, "InfoLog": self._info}.get(result_name)


class _Logs(NvlinkRenderer):
    """Writes diagnostics as nvJitLink's logs have them: nvlink's text without `nvlink` in front."""

    def __init__(self) -> None:
        super().__init__(io.StringIO(), tool="")
        self.errors = b""
        self.info = b""

    def emit(self, diagnostic: Diagnostic) -> None:
        self.stream = line = io.StringIO()
        super().emit(diagnostic)
        text = os.fsencode(line.getvalue().removeprefix(" "))
        if diagnostic.level >= DISCRETIONARY:
            self.errors += text
        else:
            self.info += text
