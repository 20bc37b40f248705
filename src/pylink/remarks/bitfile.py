"""Remarks as a bitstream, written as they come."""

from __future__ import annotations

from tempfile import SpooledTemporaryFile

from pylink._native.remarkstream import encode
from pylink.remarks.container import LLVM_19, head, string_table, tail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.remarks.output import OutputFile
    from pylink.remarks.record import Remark

# Bytes of remarks of version 0 that are kept in memory, and that are copied at once.
_IN_MEMORY = 1 << 28
_COPIED = 1 << 20


class BitstreamWriter:
    """Writes remarks to a file, batch by batch, in a container of either version.

    Version 0 has the string table in front, so its remarks wait in a temporary file. Without any
    remark the file is empty: no reader takes a container of none.
    """

    def __init__(self, output: OutputFile, version: int) -> None:
        self.path = output.path
        self._output = output
        self._version = version
        self._strings: dict[str, int] = {}
        self._waiting = None
        if version == LLVM_19:
            self._waiting = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 -- open until the end
        self._error: OSError | None = None

    def write(self, remarks: list[Remark]) -> None:
        if self._waiting is None:
            if not self._strings:
                self._output.write(head(self._version, None))
            self._output.write(encode(remarks, self._strings))
        elif self._error is None:
            try:
                self._waiting.write(encode(remarks, self._strings))
            except OSError as error:
                self._error = error

    def close(self) -> None:
        if self._error is not None:
            self.discard()
            raise self._error
        if self._strings:
            table = string_table(self._strings)
            if self._waiting is None:
                self._output.write(tail(table))
            else:
                self._output.write(head(self._version, table))
                self._waiting.seek(0)
                while data := self._waiting.read(_COPIED):
                    self._output.write(data)
        self._discard_waiting()
        self._output.commit()

    def discard(self) -> None:
        self._discard_waiting()
        self._output.discard()

    def _discard_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.close()
