"""Rendered pages, and the HTML shell around them."""

import base64
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from markupsafe import Markup, escape
from plotly.offline import get_plotlyjs

from csit_utils.report.facts import facts
from csit_utils.report.figures import Figure
from csit_utils.report.html import fill, script, style
from csit_utils.report.report_context import ReportContents
from csit_utils.report.study import Page

_ID = re.compile(r'\bid="([^"]+)"')
_LINK = re.compile(r'\bhref="#([^"]+)"')


@dataclass(frozen=True)
class Rendered:
    """The body of a page."""

    name: str
    title: str
    html: Markup
    figures: tuple[Figure, ...]
    count: int = 0
    """Number shown in the navigation, such as failed tests."""
    packed: Mapping[str, str] = field(default_factory=dict)
    """Compressed contents of test entries (`deferred.deflated`), by anchor."""

    @property
    def ids(self) -> set[str]:
        """Return all anchors."""
        return {self.name, *_ID.findall(self.html)}

    def linked(self, places: Mapping[str, str], up: str = "", missing: Mapping[str, str] | None = None) -> "Rendered":
        """Return the page with links to other files.

        Args:
            places: File by anchor, for anchors in other files.
            up: Relative path from this page's folder to that of `places`.
            missing: Text instead of a link, by anchor, for anchors without a target.
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
    """Return the body of a page; None if it is empty."""
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
    """Return an HTML file.

    Args:
        shown: The contents of the report.
        pages: Its pages, in order.
        navigation: Links and their pages.
        assets: Relative path of the folder with style and scripts; empty: inline.
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


def deflated(text: str) -> str:
    """Return a text as a zlib stream (RFC 1950) in base64, which `script/later.js` reads."""
    return base64.b64encode(zlib.compress(text.encode())).decode()


@cache
def plotly() -> str:
    """Return the plot library, compressed."""
    return deflated(get_plotlyjs())
