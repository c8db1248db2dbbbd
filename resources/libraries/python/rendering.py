"""The templates of `resources/templates`."""

from collections.abc import Mapping

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from resources.libraries.python.paths import RESOURCES

_FOLDER = RESOURCES / "templates"


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
        autoescape=False,  # noqa: S701 - no HTML; what was not chosen by this project goes through `tojson`
    )
    return environment.get_template(template).render(values)
