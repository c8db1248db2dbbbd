"""The report in a real browser: nothing is fetched, nothing goes wrong, and what can be clicked works."""

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from csit_utils.dataset.load import load
from resources.libraries.python.model.cell import ServiceType
from tests.unit.csit_utils.builders import does_not_fit, mrr_result, result
from tests.unit.csit_utils.robot_output import write_output_xml
from tests.unit.csit_utils.test_analysis import html_of

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)

_EXEC_WITH_3_AND_4 = """
import fcntl, os, sys
high = [fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3]]
os.dup2(high[0], 3)
os.dup2(high[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """Chromium by its devtools protocol over a pipe: JSON messages that end with a zero byte."""

    def __init__(self, profile: Path) -> None:
        commands_out, self._commands = os.pipe()
        self._answers, answers_in = os.pipe()
        # Chromium reads commands from descriptor 3 and answers on 4; a shell cannot name descriptors above 9.
        start = [sys.executable, "-c", _EXEC_WITH_3_AND_4, str(commands_out), str(answers_in)]
        self._process = subprocess.Popen(
            [*start, str(CHROMIUM), *_FLAGS, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(commands_out, answers_in),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands_out)
        os.close(answers_in)
        self._number = 0
        self._rest = b""
        self._session: str | None = None
        self._loaded = False
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        try:
            pages = self.ask("Target.getTargets")["targetInfos"]
            target = next(page["targetId"] for page in pages if page["type"] == "page")
            self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Network", "Log"):
                self.ask(f"{domain}.enable")
            self.ask("Emulation.setFocusEmulationEnabled", enabled=True)  # a page without a window gets no focus
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._commands)  # it ends when nobody commands it any more
        os.close(self._answers)
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def ask(self, method: str, **params: object) -> dict[str, Any]:
        """Send a command and return its answer; events that come first are kept."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return dict(answer["result"])
            self._keep(answer)

    def _keep(self, event: dict[str, Any]) -> None:
        self._loaded |= event.get("method") == "Page.loadEventFired"
        self.events.append(event)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            chunk = os.read(self._answers, 1 << 20)
            assert chunk, "chromium ended"
            self._rest += chunk
        message, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(message))

    def open(self, page: Path, fragment: str = "") -> None:
        """Load a page and wait until its script has ended."""
        # By way of an empty page: a new fragment alone would not load it anew.
        for url in ("about:blank", page.as_uri() + fragment):
            self._loaded = False
            self.ask("Page.navigate", url=url)
            while not self._loaded:
                self._keep(self._read())
        self.wait("document.documentElement.dataset.ready === 'yes'")

    def value(self, expression: str) -> Any:
        """The value of a JavaScript expression; a promise is waited for."""
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait(self, expression: str) -> None:
        """Wait inside the page for a condition, 20 seconds at most."""
        held = self.value(
            "new Promise((done) => { const until = Date.now() + 20000; const look = () => {"
            f" if ({expression}) done(true); else if (Date.now() > until) done(false); else setTimeout(look, 25); }};"
            " look(); })"
        )
        assert held, f"never came true: {expression}"

    def look(self, width: int, height: int, *, dark: bool = False) -> None:
        """Set window size and colour scheme."""
        self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = "dark" if dark else "light"
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def screenshot(self, file: Path) -> None:
        """Write what the window shows as PNG."""
        file.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"]))

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


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with measured, simulated, oversubscribed, failed and hostile results."""
    folder = tmp_path_factory.mktemp("report")
    hostile = "</script><script>document.title='owned'</script><img src=https://example.invalid/x onerror=alert(1)>"
    results = [
        result(ServiceType.CSC, 1, 1),
        result(ServiceType.CSC, 2, 1),
        result(ServiceType.CSC, 2, 2, oversubscribed=True, histograms=False),
        result(ServiceType.CSP, 1, 1, histograms=False, test_name=hostile, testbed="local"),
        mrr_result(ServiceType.CSC, 1, 1),
        does_not_fit(ServiceType.CSP, 2, 1),
    ]
    source = write_output_xml(folder / "output.xml", results, [(hostile, "Fail", hostile, ("CSC", "1R2C"))])
    model = write_output_xml(folder / "sim.xml", [result(ServiceType.CSC, 1, 1, simulated=True, histograms=False)])
    made = folder / "density.html"
    made.write_text(html_of(load([source, model])), encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests."""
    with Browser(tmp_path_factory.mktemp("chromium")) as started:
        yield started


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1400, 420])
def test_page_loads_in_silence(browser: Browser, page: Path, tmp_path: Path, width: int, dark: bool) -> None:
    browser.events.clear()
    browser.look(width, 900, dark=dark)
    browser.open(page)
    # Go past everything, so that all that is drawn late is drawn.
    browser.value("document.querySelectorAll('details').forEach((details) => { details.open = true; })")
    count = browser.value("document.querySelectorAll('figure.plot').length")
    for number in range(count):
        browser.value(f"document.querySelectorAll('figure.plot')[{number}].scrollIntoView()")
        browser.wait(f"document.querySelectorAll('figure.plot')[{number}].querySelector('svg.main-svg')")
    assert count == 6  # two for each system, one for each test with histograms
    assert browser.complaints() == []
    assert browser.value("document.title") == "partly SIMULATED: NF service density: CSC, CSP"
    assert browser.value("document.documentElement.scrollWidth") <= width, "the page must not scroll sideways"
    browser.value("scrollTo(0, 0)")
    browser.screenshot(tmp_path / "page.png")
    assert (tmp_path / "page.png").stat().st_size > 20_000


def test_heat_map_shows_values_and_reasons(browser: Browser, page: Path) -> None:
    browser.look(1400, 900)
    browser.open(page)
    cells = browser.value("[...document.querySelectorAll('.heat td[data-tip]')].map((cell) => cell.innerText)")
    assert any(text.startswith("2") for text in cells)
    assert {"does not fit", "failed", "not run"} <= set(cells)
    colours = browser.value(
        "[...document.querySelectorAll('.heat td.c-value')].map((cell) => getComputedStyle(cell).backgroundColor)"
    )
    assert len(set(colours)) > 2
    browser.value("document.querySelector('.heat td.over a').focus()")
    assert "OVERSUBSCRIBED" in browser.value("document.getElementById('tip').innerText")


def test_filter_by_address_and_by_typing(browser: Browser, page: Path) -> None:
    browser.look(1400, 900)
    browser.open(page, "#filter=csc%202x1")
    assert browser.value("document.getElementById('shown').textContent") == "1 of 7 tests"
    browser.value(
        "{ const box = document.getElementById('filter'); box.value = 'CSP';"
        " box.dispatchEvent(new Event('input', { bubbles: true })); }"
    )
    assert browser.value("[...document.querySelectorAll('#list tbody tr')].filter((row) => !row.hidden).length") == 2
    assert browser.value("location.hash") == "#filter=CSP"


def test_sorting_keeps_the_unknown_last(browser: Browser, page: Path) -> None:
    browser.look(1400, 900)
    browser.open(page)
    rates = (
        "[...document.querySelectorAll('#list tbody tr')].map((row) => row.cells[5].dataset.v)"
        ".map((text) => text === '' ? null : Number(text))"
    )
    for down in (False, True):
        browser.value("document.querySelectorAll('#list thead th')[5].click()")
        values = browser.value(rates)
        known = [value for value in values if value is not None]
        assert known == sorted(known, reverse=down)
        assert values[len(known) :] == [None, None]


def test_deep_link_opens_its_test(browser: Browser, page: Path) -> None:
    browser.look(1400, 900)
    browser.open(page)
    anchor = browser.value("document.querySelectorAll('details.test')[1].id")
    browser.open(page, f"#{anchor}")
    assert browser.value(f"document.getElementById('{anchor}').open") is True
    browser.wait(f"document.querySelector('#{anchor} svg.main-svg')")
    browser.value(f"document.querySelectorAll('#{anchor} .choices button')[1].click()")
    visible = "[...document.querySelectorAll('tr[data-instance]')].filter((row) => row.offsetParent && !row.hidden)"
    assert browser.value(f"[...new Set({visible}.map((row) => row.dataset.instance))]") == ["1"]


def test_printing_turns_to_ink_on_paper(browser: Browser, page: Path) -> None:
    browser.look(1400, 900, dark=True)
    browser.open(page)
    assert len(browser.ask("Page.printToPDF")["data"]) > 50_000
