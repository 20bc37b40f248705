"""Pages made of templates: names in them are escaped, and what a template lacks is an error."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

HERE = Path(__file__).parent


def page_from(template: str, *folders: Path, **values: object) -> str:
    """The page of a template in one of the folders, or beside this file."""
    environment = Environment(
        loader=FileSystemLoader([*folders, HERE]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # As globals, so that macros see them, too.
    environment.globals.update(values)
    return environment.get_template(template).render()
