"""How long a reader waits for a page of a report with about 1,000 tests, in a real browser."""

import re
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from csit_utils.bench.chromium import CHROMIUM, Chromium
from csit_utils.bench.nights.__main__ import write_story
from csit_utils.bench.nights.story import story
from csit_utils.dataset.contents import InMemory
from csit_utils.dataset.load import load
from csit_utils.report.report_context import Details, ReportContents
from csit_utils.report.site import single_file, write_site
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.studies.density.model.selection import DRAFT_GRID

_SINGLE = "single file"
_HELD_BACK = re.compile(r'<script type="text/plain" data-into="list">(.*?)</script>\n?', re.DOTALL)
_PLOTS = (
    "[...document.querySelectorAll('figure.plot')].every((one) => one.getBoundingClientRect().top > innerHeight"
    " || one.querySelector('svg.main-svg'))"
)
_DRAWN = (
    "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() / 1000))))"
)


def measure(rounds: int = 3, nights: int = 12, cells: str = DRAFT_GRID) -> dict[str, Any]:
    """Open every page of a report on a simulated history, and the same report in one file.

    The time is that from the browser's start of the navigation to the page that is drawn and can be used; medians.
    Plots in the window come after that, and their time is told apart; then the rows that are held back. The peer is
    the table of results with all its rows in the page at once, in the same rounds.

    Returns:
        `ours`: the slowest page, `peer`, both in seconds, and their ratio; the note has the slowest ones.

    Raises:
        Unsupported: There is no Chromium.
    """
    if CHROMIUM is None:
        raise Unsupported("needs chromium")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        tests = write_story(story(nights, testbeds=1), folder / "nights", cells, "quick")
        pages = _pages(ReportContents(InMemory(load([folder / "nights"]))), folder)
        whole = folder / "site" / "whole.html"
        whole.write_text(_whole((folder / "site" / "results.html").read_text(encoding="utf-8")), encoding="utf-8")
        found: dict[str, list[float]] = {}
        plotted: dict[str, list[float]] = {}
        (folder / "profile").mkdir()
        with Chromium(folder / "profile") as browser:
            for number in range(rounds + 1):
                for name, page in (*pages.items(), ("whole", whole)):
                    browser.open(page)
                    if number:  # the first time warms up the browser and the files
                        found.setdefault(name, []).append(float(browser.value(_DRAWN)))
                        browser.wait(_PLOTS)
                        plotted.setdefault(name, []).append(float(browser.value(_DRAWN)))
        size_mb = pages[_SINGLE].stat().st_size / 1e6
    opened = {name: median(values) for name, values in found.items()}
    peer = opened.pop("whole")
    slowest = sorted(opened, key=lambda name: -opened[name])
    drawn = {name: median(plotted[name]) for name in opened}
    last = max(drawn, key=lambda name: drawn[name])
    return {
        "name": "page_open",
        "ours": round(opened[slowest[0]], 3),
        "peer": round(peer, 3),
        "ratio": round(peer / opened[slowest[0]], 2),
        "unit": "s",
        "note": (
            f"{tests} tests; slowest: {', '.join(f'{name} {opened[name]:.2f} s' for name in slowest[:3])}; "
            f"results {opened['results']:.2f} s, all rows of it at once {peer:.2f} s; "
            f"with the plots in the window at most {drawn[last]:.2f} s ({last}); the single file has {size_mb:.0f} MB"
        ),
    }


def _pages(shown: ReportContents, folder: Path) -> dict[str, Path]:
    write_site(ReportContents(shown.contents, details=Details.LATEST), folder / "site")
    pages = {page.stem: page for page in sorted((folder / "site").glob("*.html"))}
    pages["a test"] = next((folder / "site" / "tests").glob("*.html"))
    pages[_SINGLE] = folder / "single.html"
    pages[_SINGLE].write_text(single_file(shown), encoding="utf-8")
    return pages


def _whole(html: str) -> str:
    """The page of results with the rows in the table that it holds back."""
    rows = "".join(_HELD_BACK.findall(html))
    head, _, rest = _HELD_BACK.sub("", html).partition('id="list"')
    return head + 'id="list"' + rest.replace("</tbody>", f"{rows}</tbody>", 1)
