"""The recipes of CONTRIBUTING.md: a row is all that a new fact takes, and what they name exists.

Each runs in a process whose table has one row more, as if somebody had written it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
INPUTS = ROOT / "tests" / "golden" / "120" / "shared"

PLANT = """
import struct, sys
from importlib.util import find_spec, module_from_spec
from pathlib import Path

def plant(name, mark, row):
    spec = find_spec(name)
    text = Path(spec.origin).read_text()
    assert text.count(mark) == 1, mark
    module = sys.modules[name] = module_from_spec(spec)
    exec(compile(text.replace(mark, mark + row), spec.origin, "exec"), module.__dict__)

def inputs(sm):
    for path in sys.argv[1:]:
        data = bytearray(Path(path).read_bytes())
        (flags,) = struct.unpack_from("<I", data, 48)
        struct.pack_into("<I", data, 48, flags & ~0xFF00 | sm << 8)
        yield Path(path).name, bytes(data)

def sm(image):
    return struct.unpack_from("<I", image, 48)[0] >> 8 & 0xFF
"""


def run(code: str) -> list[str]:
    """What a process says that has planted rows."""
    words = [sys.executable, "-c", PLANT + code, *map(str, sorted(INPUTS.glob("m*.cubin")))]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_an_architecture_is_a_row() -> None:
    said = run("""
plant("pylink.facts.target", 'Architecture(121, "af", shared=SMALL_SHARED),',
      'Architecture(199, "af"),')
import pylink
for arch in ("sm_199", "sm_199f"):
    print(sm(pylink.link(inputs(199), arch=arch).image))
try:
    pylink.link(inputs(199), arch="sm_120")
except pylink.LinkError as error:
    print(error)
""")
    assert said[:2] == ["199", "199"]
    assert "arch does not match target 'sm_120'" in said[2]
    assert "sm_199" in "".join(said[3:])


def test_a_release_is_a_row() -> None:
    said = run("""
plant("pylink.facts.releases",
      'Release("13.5", "13.5.37", toolkit=135, traits=_FROM_13_5, closing=_CLOSING_13_4),',
      'Release("13.9", "13.9.1", toolkit=139, traits=_FROM_13_5, closing=_CLOSING_13_4),')
import pylink
for version in ("13.5", "13.9"):
    image = pylink.link(inputs(120), arch="sm_120", nvlink_version=version).image
    print(len(image), b"13.9" in image)
""")
    sizes = [line.split() for line in said]
    assert [known for _, known in sizes] == ["False", "True"]
    assert abs(int(sizes[0][0]) - int(sizes[1][0])) < 8


def test_an_option_is_a_row_and_a_text() -> None:
    said = run("""
plant("pylink.options.table", 'Option("preserve-relocs", "preserve-relocs"),',
      'Option("probe-it", "probe", NUMBER, recorded=NEVER),')
plant("pylink.options.help", '"Keep a record of the relocations that were resolved."),',
      '"probe-it": ("<bytes>", "Probe."),')
from pylink.options.help import help_text
from pylink.options.parse import parse
from pylink.diagnostics import Sink
print(parse(["-probe", "0x10", "a"], Sink()).values["probe_it"])
print("--probe-it <bytes>" in help_text("pylink"))
""")
    assert said == ["16", "True"]


def test_what_contributing_names_is_there() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    places = [
        *(ROOT / name for name in ("", "tests/unit", "src/_native/tables")),
        *(ROOT / "src" / name for name in ("", "pylink", "pylink/facts", "pylink/options")),
    ]
    places += [ROOT / "src/pylink" / name for name in ("remarks/passes", "api", "diagnostics")]
    # Names that every room has, in rooms that have them.
    places += [ROOT / "src/pylink" / room for room in ("remarks", "size", "profile")]
    named = set(re.findall(r"`([\w./-]+\.(?:py|md|pyx|pxd|toml))`", text))
    assert len(named) > 15
    assert {name for name in named if not any((place / name).exists() for place in places)} == set()
