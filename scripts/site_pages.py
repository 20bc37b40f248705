"""MkDocs hooks: pages of the site from files outside of docs/ and from notebooks, and their links.

CHANGELOG.md and similar files stay at the root, where people look for them; the site shows them as
pages. A link to a source file becomes its plain text, since the site has no sources.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import notebooks

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]

# Files outside of docs/, and the pages that the site makes of them.
PAGES = {
    "CHANGELOG.md": "changelog.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "examples/README.md": "examples.md",
    "README.md": "index.md",
}
NOTEBOOKS = {
    path.relative_to(ROOT).as_posix(): f"notebooks/{path.stem}.md"
    for path in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
}
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of PAGES and NOTEBOOKS."""
    from mkdocs.structure.files import File  # noqa: PLC0415 -- a dependency of the site alone

    for source, page in PAGES.items():
        if files.get_file_from_path(page) is None:
            text = (ROOT / source).read_text(encoding="utf-8")
            files.append(File.generated(config, page, content=relink(text, source, page)))
    for source, page in NOTEBOOKS.items():
        text = notebooks.markdown_page(notebooks.read(ROOT / source))
        files.append(File.generated(config, page, content=relink(text, source, page)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Return the text of a page, with links that are right in the site, if it is from docs/."""
    if page.file.abs_src_path is None:  # generated above
        return markdown
    return relink(markdown, f"docs/{page.file.src_uri}", page.file.src_uri)


def relink(text: str, source: str, page: str) -> str:
    """Return the text of the file `source`, with links that are right in the site's page `page`."""

    def replace(match: re.Match[str]) -> str:
        """Return the link with its target in the site, or its label if it has no target there.

        Links to other sites and within the page stay.
        """
        label, target = match.groups()
        path, mark, place = target.partition("#")
        if ":" in path or not path:
            return match[0]
        file = (ROOT / source).parent.joinpath(path).resolve().relative_to(ROOT).as_posix()
        if file in PAGES or file in NOTEBOOKS:
            target_page = PAGES.get(file) or NOTEBOOKS[file]
        elif file.startswith("docs/"):
            target_page = file.removeprefix("docs/")
        else:
            return label
        return f"[{label}]({relative(target_page, page)}{mark}{place})"

    return LINK.sub(replace, text)


def relative(target: str, page: str) -> str:
    """Return the relative link from `page` to `target`, both named from the top of the site."""
    to_top = "../" * (len(PurePosixPath(page).parts) - 1)
    return f"{to_top}{target}"
