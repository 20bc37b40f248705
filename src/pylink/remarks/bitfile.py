"""Writes remarks as a bitstream, batch by batch."""

from __future__ import annotations

from tempfile import SpooledTemporaryFile

from pylink._native.remarkstream import encode
from pylink.remarks.container import LLVM_19, encode_head, encode_string_table, encode_tail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.remarks.output import OutputFile
    from pylink.remarks.record import Remark

# Version 0: bytes of remarks that stay in memory (more go to a temporary file), and bytes that are
# copied at once.
_MEMORY_LIMIT = 1 << 28
_COPY_SIZE = 1 << 20


class BitstreamWriter:
    """Writes remarks to a file, batch by batch, in a container of either version.

    Version 0 has the string table in front, so its remarks are kept in a temporary file. Without
    remarks the file is empty, since no reader accepts a container without them.
    """

    def __init__(self, output: OutputFile, version: int) -> None:
        self.path = output.path
        self._output = output
        self._version = version
        self._strings: dict[str, int] = {}  # the string table: each string with its number
        self._spool = None  # encoded remarks of version 0, until the string table is complete
        if version == LLVM_19:
            self._spool = SpooledTemporaryFile(_MEMORY_LIMIT)  # noqa: SIM115 -- open until the end
        self._error: OSError | None = None  # of the first write to the spool that failed

    def write(self, remarks: list[Remark]) -> None:
        if self._spool is None:
            if not self._strings:
                self._output.write(encode_head(self._version, None))
            self._output.write(encode(remarks, self._strings))
        elif self._error is None:
            try:
                self._spool.write(encode(remarks, self._strings))
            except OSError as error:
                self._error = error

    def close(self) -> None:
        if self._error is not None:
            self.discard()
            raise self._error
        if self._strings:
            table = encode_string_table(self._strings)
            if self._spool is None:
                self._output.write(encode_tail(table))
            else:
                self._output.write(encode_head(self._version, table))
                self._spool.seek(0)
                while data := self._spool.read(_COPY_SIZE):
                    self._output.write(data)
        self._close_spool()
        self._output.commit()

    def discard(self) -> None:
        self._close_spool()
        self._output.discard()

    def _close_spool(self) -> None:
        if self._spool is not None:
            self._spool.close()
