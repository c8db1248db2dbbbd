"""Templates, styles and scripts of pages: in this package, and in the folders of studies."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from csit_utils.studies import template_folders

TEMPLATES = (Path(__file__).with_name("templates"), *template_folders())


def html_templates() -> Environment:
    """Return the environment of HTML templates: values are escaped, missing ones are errors."""
    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def own_file(name: str) -> Markup:
    """Return a style sheet or script of this project without escaping."""
    path = next(found for folder in TEMPLATES if (found := folder / name).is_file())
    return Markup(path.read_text(encoding="utf-8"))  # noqa: S704 - our own file


def study_files(folder: str, suffix: str) -> tuple[str, ...]:
    """Return the names of scripts or styles in the folders of studies, without suffix."""
    return tuple(path.stem for each in TEMPLATES[1:] for path in sorted((each / folder).glob(f"*{suffix}")))
