"""Chromium without a window, for the tests of pages.

A module of such tests says `pytestmark = [pytest.mark.parallel, IN_CHROMIUM]` and takes the fixture `browser` (one
browser for the session, see `conftest.py`): `browser.look(390, 800)`, `browser.open(path, "#anchor")`,
`browser.value("some JavaScript")`, `browser.press("ArrowRight")`.
"""

import base64
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.chromium import CHROMIUM, Chromium

IN_CHROMIUM = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
WINDOWS = pytest.mark.parametrize(("width", "dark"), [(1280, True), (390, False)])


class Browser(Chromium):
    """A browser as a reader has it: keys, windows, pictures, and what it complains about."""

    def enter(self, field: str, text: str, event: str = "input") -> None:
        """Give a field, which an expression finds, another value, as typing and choosing do."""
        told = f"field.dispatchEvent(new Event({json.dumps(event)}, {{ bubbles: true }}))"
        self.value(f"{{ const field = {field}; field.value = {json.dumps(text)}; {told}; }}")

    def click(self, selector: str, text: str) -> None:
        """Click the first of some elements that says this."""
        found = f"[...document.querySelectorAll({json.dumps(selector)})]"
        self.value(f"{found}.find((one) => one.textContent.includes({json.dumps(text)})).click()")

    def point(self, element: str, *, below: float = 0.0) -> None:
        """Move the mouse to the middle of an element, in two steps: plots see movements only."""
        box = self.value(f"{element}.getBoundingClientRect().toJSON()")
        for step in (9, 0):
            x, y = box["x"] + box["width"] / 2 + step, box["y"] + box["height"] / 2 + below
            self.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def saved(self, click: str) -> list[Any]:
        """Name, content and kind of the file that a click hands to the reader."""
        self.value("window.taken = null; csit.save = (...parts) => { window.taken = parts; }")
        self.value(click)
        self.wait("window.taken !== null")
        return list(self.value("window.taken"))

    def plots_in_window(self, pages: Iterable[Path], width: int, *, dark: bool) -> list[int]:
        """Number of plots of each page, none of which scrolls sideways; a wide window prints them, too."""
        self.look(width, 900, dark=dark)
        plots = []
        for page in pages:
            plots.append(self.shown(page, printed=width > 1000))
            assert self.complaints() == [], page.name
            assert self.value("document.documentElement.scrollWidth") <= width, f"{page.name} scrolls sideways"
        return plots

    def press(self, key: str) -> None:
        """Press and release a key: `Enter`, `ArrowRight`, `Tab`."""
        text = {"text": "\r"} if key == "Enter" else {}
        code = {"Enter": 13, "Tab": 9, "Escape": 27}.get(key, 0)
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **text)

    def show_all(self) -> int:
        """Open all that is folded, go past everything so that plots are drawn; returns how many plots there are."""
        self.value("document.querySelectorAll('details').forEach((details) => { details.open = true; })")
        count = int(self.value("document.querySelectorAll('figure.plot').length"))
        for number in range(count):
            self.value(f"document.querySelectorAll('figure.plot')[{number}].scrollIntoView()")
            self.wait(f"document.querySelectorAll('figure.plot')[{number}].querySelector('svg.main-svg')")
        return count

    def shown(self, page: Path, *, printed: bool = False) -> int:
        """Open a page and let it draw all of its plots; returns how many there are.

        Raises:
            AssertionError: Plots are missing on paper.
        """
        self.open(page)
        if printed:
            plots = "[...document.querySelectorAll('figure.plot')]"
            self.value(f"{plots}.length ? csit.plotly().then(() => true) : true")
            self.ask("Page.printToPDF")
            missing = f"{plots}.filter((one) => !one.querySelector('svg.main-svg')).map((one) => one.innerText)"
            assert self.value(missing) == [], f"{page.name}: plots that are not printed"
        return self.show_all()

    def look(self, width: int, height: int, *, dark: bool = False) -> None:
        """Set window size and colour scheme, on a screen."""
        self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = "dark" if dark else "light"
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.ask("Emulation.setEmulatedMedia", media="", features=features)

    def screenshot(self, file: Path) -> None:
        """Write what the window shows as PNG."""
        file.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot")["data"]))

    def complaints(self) -> list[str]:
        """Console errors, exceptions, and requests for anything but the page itself."""
        found = []
        for event in self.events:
            params = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                found.append(str(params["exceptionDetails"]))
            elif event.get("method") == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
                found.append(str(params["args"]))
            elif event.get("method") == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(str(params["entry"]))
            elif event.get("method") == "Network.requestWillBeSent":
                url = params["request"]["url"]
                if not url.startswith(("file:", "about:", "data:", "blob:")):
                    found.append(f"request for {url}")
        return found
