"""The documentation as a site: it builds, every link leads somewhere, and all pages are in it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mkdocs", reason="needs MkDocs: pip install '.[site]'")

ROOT = Path(__file__).parents[2]


def build(folder: Path, config: Path = ROOT / "mkdocs.yml") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict"]
    command += ["--config-file", str(config), "--site-dir", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site. `strict` makes errors of links, places in pages, and pages left out."""
    folder = tmp_path_factory.mktemp("site")
    done = build(folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_is_there(site: Path) -> None:
    pages = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    for page in pages - {Path("index.md")}:
        assert (site / page.with_suffix("") / "index.html").is_file(), page
    for made in ("index.html", "changelog/index.html", "examples/index.html"):
        assert (site / made).is_file()


def test_search_finds_a_page_by_its_words(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    found = {entry["location"] for entry in index["docs"] if "cuda.core" in entry["text"]}
    assert "jitlink/" in found


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    text = (site / "start" / "index.html").read_text(encoding="utf-8")
    assert "fonts.googleapis" not in text


def test_a_broken_link_fails_the_build(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "index.md").write_text("# Title\n\n[there](missing.md)\n")
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("nav:")[0]
    (tmp_path / "mkdocs.yml").write_text(
        config.replace("hooks:\n  - scripts/site_pages.py\n", "").replace("build/site", "site")
    )
    done = build(tmp_path / "site", tmp_path / "mkdocs.yml")
    assert done.returncode != 0
    assert "missing.md" in done.stderr
