"""Take the pictures of README.md from the results of a run: `.venv/bin/python docs/pictures.py results/<time>`.

The pictures are heat-map.png, the NDR heat maps of the density page, and test-page.png, the top of the page of the last
cell of the first map. They are taken in Chromium, so that they show what a reader sees. Simulated results are refused.
"""

import argparse
import base64
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from csit_utils.commands.results.inputs import opened
from csit_utils.report.report_context import ReportContents
from csit_utils.report.site import write_site
from resources.libraries.python.errors import ConfigError, CsitError
from tests.chromium import CHROMIUM, Chromium

PICTURES = Path(__file__).with_name("pictures")
_WIDTH_PX, _HEIGHT_PX = 1060, 520
"""Of the window: a narrow one, so that text stays readable at the width of README.md, and files stay below 150 kB."""
_HEAT_MAP = "document.querySelector('.metric .maps')?.closest('.metric')"
_LAST_CELL = """
[...document.querySelectorAll('.map:first-of-type td a[href*="test-"]')]
    .map((link) => link.getAttribute('href')).at(-1) ?? null
"""


def main() -> int:
    """Take both pictures.

    Returns:
        2 if the folder has no measured results, or Chromium is missing.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="folder of a run of ./csit local, with output.xml")
    parser.add_argument("--into", type=Path, default=PICTURES, help="folder of the pictures (default: docs/pictures)")
    given = parser.parse_args()
    if CHROMIUM is None:
        return _refuse("Chromium is not installed: apt-get install chromium")
    try:
        found = opened([given.folder / "output.xml"]).contents()
    except ConfigError as error:
        return _refuse(str(error))
    if found.problems:
        return _refuse("; ".join(each.text for each in found.problems))
    if any(row.simulated for row in found.tests):
        return _refuse(f"{given.folder}: simulated results; the pictures show measured ones")
    given.into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as made, tempfile.TemporaryDirectory() as profile:
        start = write_site(ReportContents(found), Path(made))
        with Chromium(Path(profile)) as browser:
            for name, picture in _pictures(browser, start.with_name("density.html")):
                path = given.into / name
                path.write_bytes(picture)
                sys.stdout.write(f"{path}: {len(picture) / 1000:.0f} kB\n")
    return 0


def _pictures(browser: Chromium, density: Path) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of each picture.

    Args:
        browser: Shows the pages.
        density: The page with heat maps of a report in a folder.

    Raises:
        CsitError: The report has no heat map of NDR, or no page of a test behind it.
    """
    browser.ask(
        "Emulation.setDeviceMetricsOverride", width=_WIDTH_PX, height=_HEIGHT_PX, deviceScaleFactor=1, mobile=False
    )
    browser.open(density)
    yield "heat-map.png", _taken(browser, _HEAT_MAP)
    link = browser.value(_LAST_CELL)
    if link is None:
        raise CsitError(f"{density}: no cell links to the page of its test")
    browser.open(density.parent / str(link).partition("#")[0])
    yield "test-page.png", _taken(browser, "document.querySelector('main')")


def _taken(browser: Chromium, element: str) -> bytes:
    """The part of the page that an element covers, at most one window high, as PNG."""
    box = browser.value(
        f"(() => {{ const box = {element}?.getBoundingClientRect();"
        " return box && [box.top + scrollY, box.height]; })()"
    )
    if box is None:
        raise CsitError(f"{element}: there is none on the page")
    clip = {"x": 0, "y": max(0, box[0] - 24), "width": _WIDTH_PX, "height": min(box[1] + 32, _HEIGHT_PX), "scale": 1}
    shot = browser.ask("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
    return base64.b64decode(shot["data"])


def _refuse(reason: str) -> int:
    sys.stderr.write(f"{reason}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main())
