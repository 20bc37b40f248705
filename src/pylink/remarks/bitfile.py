"""Writes remarks as a bitstream, batch by batch."""

from __future__ import annotations

from tempfile import SpooledTemporaryFile

from pylink._native.remarkstream import encode
from pylink.remarks.container import LLVM_19, encode_head, encode_string_table, encode_tail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.remarks.output import OutputFile
    from pylink.remarks.record import Remark

# Limits for container version 0: bytes of encoded remarks that stay in memory (if there are more,
# all go to a temporary file), and bytes that are copied from there to the output at a time.
_MEMORY_LIMIT = 1 << 28
_COPY_SIZE = 1 << 20


class BitstreamWriter:
    """Writes remarks to a file, batch by batch, in a container of `version` 0 or 1.

    Version 0 has the string table in front of the remarks. So they are kept in memory or in a
    temporary file until `close`, when the table is complete. Without remarks the file is empty,
    since no reader accepts a container without them.
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
        """Encode a batch of remarks and append it to the output, or with version 0 to the spool."""
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
        """Complete the file; OSError if this or an earlier write failed."""
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
        """Remove the unfinished file; an older file of this name stays."""
        self._close_spool()
        self._output.discard()

    def _close_spool(self) -> None:
        """Close the temporary file of version 0, which deletes it."""
        if self._spool is not None:
            self._spool.close()
