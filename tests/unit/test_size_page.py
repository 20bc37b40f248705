"""`pylink size --html`: a page without network that adds up and escapes names."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from helpers.fatbin_builder import PTX, container, entry
from helpers.sized import library, linked, wheel

from pylink.command.sizes import main
from pylink.report.view.sizepage import MAX_PARTS, Node, page, size_tree
from pylink.size import measure

CHROMIUM = shutil.which("chromium")
NASTY = "</script><img src=x onerror=alert(1)>&\u2028.so"
TEXT = b".version 8.0\n.target sm_80\n.address_size 64\n"


class Elements(HTMLParser):
    """Which elements and attributes a page has."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


def planted(tmp_path: Path) -> Path:
    fat = container(
        entry(linked(80, "_Z1fIiEvv", "_Z1fIfEvv", "plain"), 80, mode="zstd"),
        entry(linked(90, "plain"), 90),
        entry(TEXT, 80, kind=PTX),
        entry(TEXT, 90, kind=PTX),
    )
    members = {"a/lib.so": library([(".text", b"host"), (".nv_fatbin", fat)]), NASTY: b"text" * 99}
    return wheel(tmp_path / "some.whl", members)


def check_sums(node: Node) -> None:
    if node.parts:
        for column in ("size", "installed", "unpacked", "download"):
            parts = node.largest()
            assert sum(getattr(part, column) for part in parts) == getattr(node, column)
        for part in node.parts.values():
            check_sums(part)
    assert 0 <= node.removable <= node.size


def test_the_tree_adds_up(tmp_path: Path) -> None:
    path = planted(tmp_path)
    tree = size_tree(measure([str(path)]))
    check_sums(tree)
    assert tree.size == tree.download == path.stat().st_size
    library_node = tree.parts["a/lib.so"]
    assert (
        library_node.parts["PTX compute_80"].removable == library_node.parts["PTX compute_80"].size
    )
    assert tree.removable == library_node.removable == library_node.parts["PTX compute_80"].size
    assert "f<>" in library_node.parts["cubin sm_80"].parts


def test_many_parts_become_one() -> None:
    node = Node("all", size=sum(range(1, 101)))
    for size in range(1, 101):
        node.parts[str(size)] = Node(str(size), size=size)
    assert len(node.largest()) == MAX_PARTS + 1
    assert sum(part.size for part in node.largest()) == node.size
    assert node.largest()[-1].name == "60 others"


def test_names_are_text(tmp_path: Path) -> None:
    text = page(measure([str(planted(tmp_path))]), NASTY)
    assert text.count("</script>") == 1
    found = Elements()
    found.feed(text)
    assert found.tags.isdisjoint({"img", "link", "iframe", "base"})
    assert not found.attributes & {"src", "href", "onerror"}
    assert "://" not in text
    data = json.loads(re.search(r"const tree = (.*);\n", text)[1])  # type: ignore[index]
    assert {part["n"] for part in data["c"]} >= {"a/lib.so"}


def test_the_command_writes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, made = planted(tmp_path), tmp_path / "size.html"
    assert main([str(path), "--html", str(made)]) == 0
    assert "What could go" in made.read_text(encoding="utf-8")
    assert "linked code" in capsys.readouterr().out
    before = path.read_bytes()
    (tmp_path / "budget.toml").write_text("[total]\ninstalled = 10\n")
    for words in (
        [str(path), "--html", str(path)],
        [str(tmp_path), "--html", str(path)],
        [str(made), "--diff", str(path), "--html", str(path)],
        [str(made), "--budget", str(tmp_path / "budget.toml"), "--html", f"{tmp_path}/budget.toml"],
    ):
        assert main(words) == 2, words
        assert path.read_bytes() == before
    # An old page in a directory that is measured may be replaced.
    assert main([str(tmp_path), "--html", str(made)]) == 0


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium: apt install chromium")
def test_a_browser_draws_the_map(tmp_path: Path) -> None:
    assert CHROMIUM is not None
    made = tmp_path / "size.html"
    made.write_text(page(measure([str(planted(tmp_path))]), "some.whl"), encoding="utf-8")
    done = subprocess.run(
        [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1280,900",
            f"--user-data-dir={tmp_path}/profile", "--dump-dom", made.as_uri(),
        ],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    tiles = re.findall(r'<button [^>]*aria-label="([^"]*)"[^>]* style="([^"]*)"', done.stdout)
    assert len(tiles) == 3
    assert all(re.search(r"width: [1-9]", style) for _, style in tiles)
    assert any(label.startswith("a/lib.so: ") for label, _ in tiles)
    # Parts in a part have labels, too: the target alone, since the colour says the kind.
    boxes = re.findall(r'<div class="part"[^>]*>(.*?)</div>', done.stdout)
    inside = [re.findall(r"<span>(.*?)</span>", box) for box in boxes]
    assert [words[0] for words in inside if words][:1] == ["sm_80"]
    assert all(re.fullmatch(r"~?[\d.]+ [kMG]?B", words[1]) for words in inside if words[1:])
