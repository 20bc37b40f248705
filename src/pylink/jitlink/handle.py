"""One handle of nvJitLink: inputs are kept until the link, which is ours where nothing is compiled.

A handle becomes one of the real library, with all that was added to it, as soon as an option or an
input asks for a compiler. Result codes and logs are nvJitLink's, as seen of release 13.0:
an input that is refused takes no part, and the link goes on without it.
"""

from __future__ import annotations

import ctypes
import io
import os
import time

from pylink.diagnostics import DISCRETIONARY, Sink
from pylink.diagnostics.errors import LinkError
from pylink.diagnostics.nvlink import NvlinkRenderer
from pylink.facts.objectformats import E_FLAGS, sm_of_cubin
from pylink.facts.target import Target
from pylink.files.reading import read_incoming
from pylink.inputs import kinds
from pylink.jitlink.options import understand
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
from pylink.options.plan import Plan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.diagnostics.record import Diagnostic
    from pylink.jitlink.real import Real, RealHandle
    from pylink.options.table import Value

# nvJitLink.h: nvJitLinkInputType, and the kinds of files that each takes.
ANY = 10
TYPES = {
    1: ("CUBIN", (kinds.CUBIN,)),
    2: ("PTX", (kinds.PTX,)),
    3: ("LTOIR", (kinds.LTOIR,)),
    4: ("FATBIN", (kinds.FATBIN,)),
    5: ("OBJECT", (kinds.HOST, kinds.CUBIN)),
    6: ("LIBRARY", (kinds.ARCHIVE, kinds.THIN_ARCHIVE)),
    7: ("INDEX", ()),
    ANY: (
        "ANY",
        (
            kinds.CUBIN,
            kinds.HOST,
            kinds.FATBIN,
            kinds.ARCHIVE,
            kinds.THIN_ARCHIVE,
            kinds.PTX,
            kinds.LTOIR,
        ),
    ),
}
COMPILED = (kinds.PTX, kinds.LTOIR)

# Options of every link, as in the real library.
ALWAYS: dict[str, Value] = {"allow_empty": True, "ignore_host_info": True, "merc_dedup": "off"}

# Errors after which the real library goes on: it compiles, and of two definitions, sizes, memory
# spaces or managed attributes it keeps the first and reports that. nvlink adds the last one.
REAL_LINKS = {
    "needs-compiler",
    "multiple-definition",
    "size-mismatch",
    "common-too-large",
    "space-mismatch",
    "managed-mismatch",
    "merge-failed",
}

LOGS = ("ErrorLog", "InfoLog")


class Handle:
    """What nvJitLinkCreate makes; methods return nvJitLinkResult numbers."""

    def __init__(self, options: Sequence[bytes], real: Real) -> None:
        self._begun = time.perf_counter()
        self._option_texts = list(options)
        self._real = real
        self._inputs: list[tuple[int, Input]] = []
        self._errors = self._info = b""
        self._image: bytes | None = None
        self._forwarded: RealHandle | None = None
        self.created = SUCCESS
        self._wishes = understand(os.fsdecode(word) for word in options)
        if self._wishes is None:
            if not any(word.startswith(b"-arch=") for word in options):
                self.created = MISSING_ARCH
            else:
                self.created = self._forward()
        else:
            self._target = Target(str(self._wishes.values["arch"]))

    def add_data(self, kind: int, data: bytes, name: bytes | None) -> int:
        if self._forwarded is not None:
            return self._forwarded.add_data(kind, data, name)
        return self._add(kind, os.fsdecode(name or b""), data)

    def add_file(self, kind: int, name: bytes) -> int:
        if self._forwarded is not None:
            return self._forwarded.add_file(kind, name)
        path = os.fsdecode(name)
        try:
            data = read_incoming(path)
        except OSError:
            return self._refuse(INVALID_INPUT, f"no such file: {path}\n")
        return self._add(kind, path, data)

    def complete(self) -> int:
        if self._forwarded is not None:
            return self._forwarded.complete()
        if self._wishes is None or self._image is not None:
            return INTERNAL
        start = time.perf_counter()
        logs = _Logs()
        sink = Sink(logs)
        values = {**self._wishes.values, **ALWAYS}
        try:
            inputs = [source for _, source in self._inputs]
            plan = Plan(values, (), sink)
            image = run_link(values, inputs, plan, sink, compiles=False).image
            assert isinstance(image, bytes)  # no file was asked for
            self._image = image
        except LinkError as error:
            kinds_found = {
                diagnostic.kind
                for diagnostic in error.diagnostics
                if diagnostic.level >= DISCRETIONARY
            }
            if kinds_found <= REAL_LINKS and self._real.is_there():
                return self._forward() or self.complete()
        finally:
            sink.close()
        if self._wishes.timed:
            before, during = start - self._begun, time.perf_counter() - start
            self._info += f"nvJitLink time until Complete: {1000 * before:f}\n".encode()
            self._info += f"nvJitLinkComplete time to finish: {1000 * during:f}\n".encode()
        self._info += logs.info
        self._errors += logs.errors
        return SUCCESS if self._image is not None else self._refuse(INTERNAL, "ERROR 9: finish\n")

    def get_size(self, what: str) -> tuple[int, int]:
        """The result, and the bytes of one of `real.RESULTS`; a log has a NUL unless empty."""
        if self._forwarded is not None:
            return self._forwarded.get_size(what)
        result = self._find(what)
        if result is None:
            return (INTERNAL if what == "LinkedCubin" else INVALID_INPUT), 0
        return SUCCESS, len(result) + (result != b"" and what in LOGS)

    def get(self, what: str, address: int) -> int:
        """Write one of `real.RESULTS` to an address with room for it and, of a log, a NUL."""
        if self._forwarded is not None:
            return self._forwarded.get(what, address)
        result = self._find(what)
        if result is None:
            return INTERNAL if what == "LinkedCubin" else INVALID_INPUT
        if what in LOGS:
            result += b"\0"
        ctypes.memmove(address, result, len(result))
        return SUCCESS

    def destroy(self) -> int:
        return SUCCESS if self._forwarded is None else self._forwarded.destroy()

    def _add(self, kind: int, name: str, data: bytes) -> int:
        label, takes = TYPES.get(kind, ("", ()))
        if not data:
            return INVALID_INPUT
        if not label:
            return self._refuse(INCORRECT_INPUT_TYPE, f"unsupported input type: {name}\n")
        if self._wishes is None or self._image is not None:
            return self._refuse(INTERNAL, f"ERROR 1: empty elfw when adding cubin{name}\n")
        input_kind = kinds.kind_of(data)
        if input_kind not in takes:
            if kind == ANY:
                return self._refuse(UNRECOGNIZED_INPUT, f"unrecognized input type: {name}\n")
            text = f"ERROR 1: bad input: does not match type NVJITLINK_INPUT_{label}{name}\n"
            return self._refuse(INCORRECT_INPUT_TYPE, text)
        if input_kind in COMPILED:
            result = self._forward()
            return result or self.add_data(kind, data, os.fsencode(name))
        if input_kind == kinds.CUBIN and not self._runs(data):
            return self._refuse(INVALID_INPUT, f"ERROR 4: bad input:{name}\n")
        self._inputs.append((kind, Input(name or f"<input {len(self._inputs)}>", data)))
        return SUCCESS

    def _runs(self, data: bytes) -> bool:
        """Whether the target runs a cubin, as far as its header tells; the link looks closer."""
        whole = len(data) >= E_FLAGS.stop
        return not whole or self._target.accepts_cubin(sm_of_cubin(data), specific=False)

    def _forward(self) -> int:
        """Go on with the real library; the first result of it that is an error."""
        try:
            result, self._forwarded = self._real.create(self._option_texts)
        except OSError as error:
            self._wishes = None
            return self._refuse(INTERNAL, f"{error}\n")
        for kind, source in self._inputs:
            assert source.data is not None
            result = result or self._forwarded.add_data(kind, source.data, os.fsencode(source.name))
        self._inputs.clear()
        return result

    def _refuse(self, result: int, text: str) -> int:
        self._errors += os.fsencode(text)
        return result

    def _find(self, what: str) -> bytes | None:
        if what == "LinkedCubin":
            return self._image
        return {"ErrorLog": self._errors, "InfoLog": self._info}.get(what)


class _Logs(NvlinkRenderer):
    """Diagnostics in nvlink's words, without its name in front, as nvJitLink's logs have them."""

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
