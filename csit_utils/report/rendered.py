"""Pages that are written out, and the shell around them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from markupsafe import Markup, escape

from csit_utils.report.deferred import plotly
from csit_utils.report.facts import facts
from csit_utils.report.figures import Figure
from csit_utils.report.html import fill, script, style
from csit_utils.report.report_context import ReportContents
from csit_utils.report.study import Page

_ID = re.compile(r'\bid="([^"]+)"')
_LINK = re.compile(r'\bhref="#([^"]+)"')


@dataclass(frozen=True)
class Rendered:
    """The inside of a page."""

    name: str
    title: str
    html: Markup
    figures: tuple[Figure, ...]
    count: int = 0
    """Of what wants attention; the navigation shows it."""
    packed: Mapping[str, str] = field(default_factory=dict)
    """What a test's entry unpacks when it is opened (`later.deflated`), by anchor."""

    @property
    def ids(self) -> set[str]:
        """What can be linked to."""
        return {self.name, *_ID.findall(self.html)}

    def linked(self, places: Mapping[str, str], up: str = "", missing: Mapping[str, str] | None = None) -> "Rendered":
        """The same with links that lead to other files.

        Args:
            places: File of each anchor that is elsewhere.
            up: The way from this page's folder to the one that `places` start from.
            missing: What to say instead of a link, by anchor, where there is nothing that it could lead to.
        """
        missing = missing or {}

        def lead(found: re.Match[str]) -> str:
            anchor = found[1]
            if anchor == self.name or f'id="{anchor}"' in self.html:
                return found[0]
            if anchor in places:
                return f'href="{up}{places[anchor]}#{anchor}"'
            if anchor in missing:
                return f'role="note" tabindex="0" data-nopage data-tip="{escape(missing[anchor])}"'
            return found[0]

        html = Markup(_LINK.sub(lead, self.html))  # noqa: S704 - quotes in text are escaped, so these are our links
        return replace(self, html=html)


def render(page: Page[ReportContents], shown: ReportContents) -> Rendered | None:
    """A page's inside; None where it has nothing to show."""
    values = page.build(shown)
    if values is None:
        return None
    rest = dict(values)
    figures: Sequence[Figure] = rest.pop("figures", ())  # type: ignore[assignment]
    count: int = rest.pop("count", 0)  # type: ignore[assignment]
    html = fill(f"pages/{page.name}.html.j2", rest)
    return Rendered(page.name, page.title, html, tuple(figures), count)


def shell(
    shown: ReportContents, pages: Sequence[Rendered], navigation: Sequence[tuple[str, Rendered]], assets: str = ""
) -> str:
    """A whole HTML file.

    Args:
        shown: What it is about.
        pages: What is in it, in order.
        navigation: Links, and the pages they lead to.
        assets: The way to the folder with style and scripts; empty to put all of it into this file.
    """
    return fill(
        "shell.html.j2",
        {
            "title": _title(shown),
            "facts": facts(shown.contents) if any(page.name == "overview" for page in pages) else (),
            "simulated": shown.simulated,
            "measured": shown.measured,
            "pages": pages,
            "navigation": navigation,
            "figures": {figure.identity: figure.payload() for page in pages for figure in page.figures},
            "assets": assets,
            "plotly": None if assets else plotly(),
            "style": style(),
            "script": script(),
        },
    )


def _title(shown: ReportContents) -> str:
    types = sorted({row.service_type for row in shown.rows if row.service_type})
    if not types and shown.characterizations:
        return "NF characterization"
    return f"NF service density: {', '.join(types)}" if types else "NF service density"
