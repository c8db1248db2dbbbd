"""The templates that VPP's files and commands are made from."""

from collections.abc import Mapping
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

_FOLDER = Path(__file__).parents[4] / "templates"


def render(template: str, values: Mapping[str, object]) -> str:
    """Fill a template of `resources/templates`.

    Raises:
        jinja2.UndefinedError: A value is missing.
    """
    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - configuration of names that the plan chose
    )
    return environment.get_template(template).render(values)


def commands(template: str, values: Mapping[str, object]) -> tuple[str, ...]:
    """The commands that a template gives, one from each line; lines that begin with # are remarks."""
    lines = (" ".join(line.split()) for line in render(template, values).splitlines())
    return tuple(line for line in lines if line and not line.startswith("#"))
