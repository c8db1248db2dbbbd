"""The templates of pages: where they are, and how they are read."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

TEMPLATES = Path(__file__).with_name("templates")


def html_templates() -> Environment:
    """For templates of HTML: values are escaped, and one that is missing is an error."""
    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def own_file(name: str) -> Markup:
    """A style sheet or script of ours, as it is."""
    return Markup((TEMPLATES / name).read_text(encoding="utf-8"))  # noqa: S704 - our own file
