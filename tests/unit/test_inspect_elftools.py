"""The reader of cubins agrees with pyelftools on real ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from pylink.inspect.contents import symbols
from pylink.inspect.image import Image

GOLDEN = Path(__file__).parent.parent / "golden"
CUBINS = sorted(GOLDEN.glob("*/*/*.cubin"))


@pytest.mark.parametrize("path", CUBINS, ids=lambda path: str(path.relative_to(GOLDEN)))
def test_sections_segments_and_symbols(path: Path) -> None:
    image = Image(path.read_bytes())
    with path.open("rb") as file:
        elf = ELFFile(file)
        theirs = [(s.name, s["sh_offset"], s["sh_size"], s["sh_info"]) for s in elf.iter_sections()]
        segments = [(s["p_offset"], s["p_filesz"], s["p_memsz"]) for s in elf.iter_segments()]
        table = elf.get_section_by_name(".symtab")
        assert isinstance(table, SymbolTableSection)
        names = [(s.name, s["st_value"], s["st_size"]) for s in table.iter_symbols()]
    assert [(s.name, s.offset, s.size, s.info) for s in image.sections] == theirs
    assert [(s.offset, s.filesz, s.memsz) for s in image.segments] == segments
    symtab = image.section(".symtab")
    assert symtab is not None
    # A symbol without a name is called after its section here.
    ours = [
        ("" if row.name.startswith("(") else row.name, row.value, row.size)
        for row in symbols(image, symtab)
    ]
    assert ours == names
