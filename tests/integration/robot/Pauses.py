"""A Robot listener that lets a run stand still at chosen moments, so that a test can break something exactly then."""

import importlib
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Pauses:
    """Stops the process (SIGSTOP) at the moments of a file of JSON, and adds a line to `FILE.reached` before.

    A moment is
    `{"at": "package.module:Class.method", "after": false, "test": "CSC 1R1C", "attempt": 2, "call": 1, "name": …}`:
    before or after that call of the method in the test whose name in the journal begins so, counted in the whole run
    where the test is empty, and in all attempts at the test where the attempt is 0.
    """

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self, file: str) -> None:
        self._reached = Path(f"{file}.reached")
        self._counts: dict[int, int] = {}
        self._test = ""
        self._attempts: dict[str, int] = {}
        moments = json.loads(Path(file).read_text(encoding="utf-8"))
        self._watch(
            "resources.libraries.python.recording.run_journal:RunJournal.started",
            lambda call, run, key: self._begin(key.test) or call(run, key),
        )
        for number, moment in enumerate(moments):
            self._watch(moment["at"], self._pausing(number, moment))

    def _begin(self, test: str) -> None:
        self._test = test
        self._attempts[test] = self._attempts.get(test, 0) + 1

    def _pausing(self, number: int, moment: dict[str, Any]) -> Callable[..., Any]:
        def call(original: Callable[..., Any], *args: Any, **named: Any) -> Any:
            due = False
            attempts = (0, self._attempts.get(self._test, 0))
            if self._test.startswith(moment.get("test", "")) and moment.get("attempt", 0) in attempts:
                self._counts[number] = self._counts.get(number, 0) + 1
                due = self._counts[number] == moment.get("call", 1)
            if due and not moment.get("after"):
                self._stop(moment["name"])
            try:
                return original(*args, **named)
            finally:
                if due and moment.get("after"):
                    self._stop(moment["name"])

        return call

    def _stop(self, name: str) -> None:
        with self._reached.open("a", encoding="utf-8") as file:
            file.write(f"{name}\n")
        os.kill(os.getpid(), signal.SIGSTOP)

    @staticmethod
    def _watch(at: str, call: Callable[..., Any]) -> None:
        module, _, path = at.partition(":")
        *owners, name = path.split(".")
        owner: Any = importlib.import_module(module)
        for each in owners:
            owner = getattr(owner, each)
        original = getattr(owner, name)
        setattr(owner, name, lambda *args, **named: call(original, *args, **named))
