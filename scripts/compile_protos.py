"""Compile the .proto files of the report format into the module beside them.

Python code from protoc works only with the release of protobuf that wrote it. So the module
contains the compiled files as data, which every release since 4.22 can load. Run this after a
change of a .proto file, with grpcio-tools installed; `--check` only says whether the module is
stale.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from google.protobuf import descriptor_pb2
from grpc_tools import protoc

FOLDER = Path(__file__).resolve().parent.parent / "src" / "pylink" / "report" / "proto"
MODULE = FOLDER / "compiled.py"
HEAD = '''\
"""The .proto files of this directory, compiled, each after those that it imports.

Generated: scripts/compile_protos.py.
"""

# fmt: off
FILES = (
'''


def module_text(folder: Path) -> str:
    """Return the text of the module for the .proto files of a folder."""
    names = sorted(path.name for path in folder.glob("*.proto"))
    with tempfile.TemporaryDirectory() as temporary:
        out = Path(temporary) / "set"
        status = protoc.main(["protoc", f"-I{folder}", f"--descriptor_set_out={out}", *names])
        if status:
            raise SystemExit(status)
        files = descriptor_pb2.FileDescriptorSet()
        files.ParseFromString(out.read_bytes())
    rows = (f"    {file.SerializeToString()!r},  # {file.name}\n" for file in files.file)
    return f"{HEAD}{''.join(rows)})\n"


def main() -> int:
    """Write the module if it is stale, or with --check say whether it is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if stale")
    check = parser.parse_args().check
    text = module_text(FOLDER)
    stale = not MODULE.is_file() or MODULE.read_text() != text
    if stale and not check:
        MODULE.write_text(text)
    print("stale" if stale and check else "written" if stale else "up to date")
    return int(check and stale)


if __name__ == "__main__":
    sys.exit(main())
