"""Chromium without a window, driven over a pipe, for the tests of pages.

A module of such tests says `pytestmark = IN_CHROMIUM` and takes the fixture `browser` (one browser for the session,
see `conftest.py`): `browser.look(390, 800)`, `browser.open(path, "#anchor")`, `browser.value("some JavaScript")`,
`browser.press("ArrowRight")`, and at the end `assert browser.complaints() == []`.
"""

import base64
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
IN_CHROMIUM = [pytest.mark.parallel, pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")]

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

    def look(self, width: int, height: int, *, dark: bool = False) -> None:
        """Set window size and colour scheme."""
        self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = "dark" if dark else "light"
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def screenshot(self, file: Path, *, whole: bool = False) -> None:
        """Write what the window shows as PNG; with `whole` all of the page."""
        params: dict[str, object] = {"format": "png"}
        if whole:
            size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
            params |= {"captureBeyondViewport": True, "clip": {**size, "x": 0, "y": 0, "scale": 1}}
        file.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot", **params)["data"]))

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
