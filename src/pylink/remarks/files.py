"""Reads files of remarks in either format, and writes them in a chosen one."""

from __future__ import annotations

import os

from pylink.files.reading import is_text, read_incoming
from pylink.remarks.channel import BATCH
from pylink.remarks.container import LLVM_22, MAGIC, VERSIONS
from pylink.remarks.output import OutputFile
from pylink.remarks.yamlfile import YamlWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pylink.remarks.channel import Writer
    from pylink.remarks.record import Remark

YAML = "yaml"
BITSTREAM = "bitstream"
FORMATS = (YAML, BITSTREAM)


def read_remarks(path: str | os.PathLike[str]) -> Iterator[Remark]:
    """Yield the remarks of a YAML file or of a bitstream of either version, in order.

    An empty file contains no remarks. OSError if it cannot be read, MalformedRemarks if its
    contents are invalid, MissingPackage for YAML without PyYAML.
    """
    name = os.fspath(path)
    data = read_incoming(name, is_wanted=lambda head: head.startswith(MAGIC) or is_text(head))
    # Each reader is imported only if needed: it loads much that the other does not use.
    if not data:
        return
    if data.startswith(MAGIC):
        from pylink.remarks.bitread import read_bitstream

        yield from read_bitstream(data, name)
    else:
        from pylink.remarks.yamlread import read_yaml

        yield from read_yaml(data, name)


def open_writer(path: str, format: str = YAML, version: int = LLVM_22) -> Writer:
    """Open a writer of remarks to a file; `-` is standard output.

    `version` is that of a bitstream's container. ValueError for a format not in `FORMATS` or a
    version not in `VERSIONS`, OSError or ValueError if the file cannot be created or replaced.
    """
    if format not in FORMATS:
        raise ValueError("Unknown remark serializer format.")
    if version not in VERSIONS:
        raise ValueError(f"container version {version} is unknown")
    if format == YAML:
        return YamlWriter(OutputFile(path))
    from pylink.remarks.bitfile import BitstreamWriter

    return BitstreamWriter(OutputFile(path), version)


def write_remarks(
    path: str | os.PathLike[str],
    remarks: Iterable[Remark],
    *,
    format: str = YAML,
    version: int = LLVM_22,
) -> None:
    """Write a file of remarks atomically; raises the exceptions of `open_writer`.

    An OSError of a write is raised, too; it leaves an older file unchanged.
    """
    writer = open_writer(os.fspath(path), format, version)
    batch: list[Remark] = []
    try:
        for remark in remarks:
            batch.append(remark)
            if len(batch) == BATCH:
                writer.write(batch)
                batch = []
        if batch:
            writer.write(batch)
    except BaseException:
        writer.discard()
        raise
    writer.close()
