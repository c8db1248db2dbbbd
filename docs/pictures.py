"""Take the pictures of README.md from the report of a run: `.venv/bin/python docs/pictures.py results/<time>`.

The pictures are docs/pictures/heat-map.png, the NDR heat maps of the density page, and docs/pictures/test-page.png, the
top of the page of the last cell of the first map. They are taken in Chromium, so that they show what a reader sees.
Reports of simulated runs are refused.
"""

import argparse
import base64
import sys
import tempfile
from pathlib import Path

from tests.chromium import CHROMIUM, Chromium

PICTURES = Path(__file__).with_name("pictures")
_WIDTH_PX, _HEIGHT_PX = 1060, 760
"""Of the window: a narrow one, so that text stays readable at the width of README.md."""
_HEAT_MAP = "document.querySelector('.metric .maps')?.closest('.metric')"
_LAST_CELL = """
[...document.querySelectorAll('.map:first-of-type td a[href*="test-"]')]
    .map((link) => link.getAttribute('href')).at(-1) ?? null
"""


def main() -> int:
    """Take both pictures.

    Returns:
        2 if the folder has no report of measured results, or Chromium is missing.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="folder of a run of ./csit local, with density.html or a site")
    page = parser.parse_args().folder / "density.html"
    if CHROMIUM is None:
        return _refuse("Chromium is not installed: apt-get install chromium")
    if not page.is_file():
        return _refuse(f"{page}: no such page; make it by: ./csit report {page.parent}/output.xml -o {page.parent}")
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as profile, Chromium(Path(profile)) as browser:
        browser.ask(
            "Emulation.setDeviceMetricsOverride", width=_WIDTH_PX, height=_HEIGHT_PX, deviceScaleFactor=1, mobile=False
        )
        browser.open(page)
        if browser.value("document.querySelector('.is-simulated') !== null"):
            return _refuse(f"{page}: simulated results; the pictures show measured ones")
        _take(browser, _HEAT_MAP, "heat-map.png")
        link = browser.value(_LAST_CELL)
        if link is None:
            return _refuse(f"{page}: no cell links to the page of its test")
        browser.open(page.parent / str(link).partition("#")[0])
        _take(browser, "document.querySelector('main')", "test-page.png")
    return 0


def _take(browser: Chromium, element: str, name: str) -> None:
    """Write the part of the page that an element covers, at most one window high."""
    box = browser.value(
        f"(() => {{ const box = {element}.getBoundingClientRect(); return [box.top + scrollY, box.height]; }})()"
    )
    clip = {"x": 0, "y": max(0, box[0] - 24), "width": _WIDTH_PX, "height": min(box[1] + 32, _HEIGHT_PX), "scale": 1}
    picture = browser.ask("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
    path = PICTURES / name
    path.write_bytes(base64.b64decode(picture["data"]))
    sys.stdout.write(f"{path}: {path.stat().st_size / 1000:.0f} kB\n")


def _refuse(reason: str) -> int:
    sys.stderr.write(f"{reason}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main())
