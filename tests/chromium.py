"""Chromium without a window, by its devtools protocol over a pipe: JSON messages that end with a zero byte.

https://chromedevtools.github.io/devtools-protocol/
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

from resources.libraries.python.errors import CsitError, NotReady

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
"""None where it is not installed."""
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
    # Pages load the plot library at once in a browser without a window, since it may print them; readers have a window.
    "--user-agent=Mozilla/5.0 (X11; Linux x86_64) Chrome",
)
_EXEC_WITH_3_AND_4 = """
import fcntl, os, sys
high = [fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3]]
os.dup2(high[0], 3)
os.dup2(high[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
_WAIT_S = 300
_END_S = 30


class BrowserError(CsitError):
    """The browser ended, or refused a command."""


class Chromium:
    """One browser with one page."""

    def __init__(self, profile: Path) -> None:
        """Start it."""
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
        """What it told without being asked."""

    def __enter__(self) -> Self:
        """Take its page."""
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
        """End it."""
        os.close(self._commands)  # it ends with its last writer
        os.close(self._answers)
        try:
            self._process.wait(timeout=_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def ask(self, method: str, **params: object) -> dict[str, Any]:
        """Send a command and return its answer; events that come first are kept.

        Raises:
            BrowserError: It refused, or ended.
        """
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']}")
                return dict(answer["result"])
            self._keep(answer)

    def _keep(self, event: dict[str, Any]) -> None:
        self._loaded |= event.get("method") == "Page.loadEventFired"
        self.events.append(event)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            chunk = os.read(self._answers, 1 << 20)
            if not chunk:
                raise BrowserError("chromium ended")
            self._rest += chunk
        message, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(message))

    def open(self, page: Path, fragment: str = "", *, scripted: bool = True) -> None:
        """Load a page of a report and wait until its script, if it has one, has ended."""
        # By way of an empty page: a new fragment alone would not load it anew.
        for url in ("about:blank", page.as_uri() + fragment):
            self._loaded = False
            self.ask("Page.navigate", url=url)
            while not self._loaded:
                self._keep(self._read())
        if scripted:
            self.wait("document.documentElement.dataset.ready === 'yes'")

    def value(self, expression: str) -> Any:
        """The value of a JavaScript expression; a promise is waited for.

        Raises:
            BrowserError: It threw.
        """
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise BrowserError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait(self, expression: str) -> None:
        """Wait inside the page for a condition.

        Raises:
            NotReady: It was not so for `_WAIT_S`, which is for a machine that is several times slower and busy.
        """
        held = self.value(
            f"new Promise((done) => {{ const until = Date.now() + {_WAIT_S * 1000}; const look = () => {{"
            f" if ({expression}) done(true); else if (Date.now() > until) done(false); else setTimeout(look, 25); }};"
            " look(); })"
        )
        if not held:
            raise NotReady(expression, _WAIT_S, "false")
