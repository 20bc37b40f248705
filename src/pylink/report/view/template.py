"""Renders templates: values are escaped, and an undefined name is an error."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

# The directory of the templates.
HERE = Path(__file__).parent


def page_from(template: str, *directories: Path, **values: object) -> str:
    """Render the file `template`, in one of `directories` or beside this file, with `values`."""
    environment = Environment(
        loader=FileSystemLoader([*directories, HERE]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(values)
