"""Templates with filters for numbers, shared marks, scripts and styles."""

from collections.abc import Mapping
from functools import cache

from jinja2 import Environment
from markupsafe import Markup

from csit_utils.analysis.grouping import Metric, per_core
from csit_utils.analysis.verdicts import verdict_of
from csit_utils.report import units
from csit_utils.report.links import cell_anchor, cell_href, test_href
from csit_utils.report.templating import html_templates, own_file, study_files
from csit_utils.report.testview import bounds_pair, bounds_text

SCRIPTS = (
    "base",
    "later",
    "plots",
    "tables",
    "heat",
    "beside",
    "tips",
    "trend",
    "student",
    "comparison",
    "compare",
    "choices",
    "environments",
    *study_files("script", ".js"),
    "addresses",
)
"""Files `templates/script/{name}.js`, in order; `addresses` is last, because it shows what the others create."""
STYLES = (
    "base",
    "marks",
    "heat",
    "plots",
    "tables",
    "tests",
    "trend",
    "compare",
    "details",
    "characterized",
    *study_files("style", ".css"),
    "narrow",
    "print",
)
"""Files `templates/style/{name}.css`, in order; rules for narrow windows and for print come last."""


@cache
def _environment() -> Environment:
    environment = html_templates()
    environment.filters.update(
        digits3=units.digits3,
        rate=units.rate,
        bandwidth=units.bandwidth,
        latency=units.latency,
        seconds=units.seconds,
        percent=units.percent,
    )
    environment.globals.update(
        Metric=Metric,
        bounds_pair=bounds_pair,
        bounds_text=bounds_text,
        cell_anchor=cell_anchor,
        cell_href=cell_href,
        per_core=per_core,
        test_href=test_href,
        verdict_of=verdict_of,
    )
    # Marks, tips and plots, which all pages share.
    shared = environment.get_template("parts.html.j2").module
    environment.globals.update({name: getattr(shared, name) for name in dir(shared) if not name.startswith("_")})
    return environment


def fill(template: str, values: Mapping[str, object]) -> Markup:
    """Return a rendered template; text is escaped.

    Args:
        template: Path below `templates/`.
        values: Values by name; a missing name is an error.
    """
    return Markup(_environment().get_template(template).render(values))  # noqa: S704 - escaped by the template


@cache
def script() -> Markup:
    """Return the script of pages."""
    return Markup("\n").join(own_file(f"script/{name}.js") for name in SCRIPTS)


@cache
def style() -> Markup:
    """Return the style sheet of pages."""
    return Markup("\n").join(own_file(f"style/{name}.css") for name in STYLES)
