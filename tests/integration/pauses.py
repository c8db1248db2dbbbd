"""Moments of a run at which a test breaks something: the run stands still there, as `robot/Pauses.py` lets it."""

import json
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

from resources.libraries.python.drivers.generators.builtin.driver import BuiltInGenerator
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.recording.step_journal import StepJournal
from resources.libraries.python.studies.shared.run_state import StudyRunState
from resources.libraries.python.testbed.deployment.cell import CellUnderTest, Deployment
from resources.libraries.python.testbed.remote.proxies import Proxy
from tests.integration.robot_runs import PROJECT

LISTENER = PROJECT / "tests" / "integration" / "robot" / "Pauses.py"


def call_of(method: Callable[..., object]) -> str:
    """How the listener finds a method: its module, its class and its name."""
    return f"{method.__module__}:{method.__qualname__}"


DEPLOYING = call_of(BuiltInGenerator.start)
"""VSwitch and NFs run, the generator does not yet."""
DEPLOYED = call_of(Deployment.affinity)
"""The last step of a deployment: all parts run, and nothing has been sent."""
STEPS = call_of(Deployment.__enter__)
"""A step of a study is about to be deployed, or afterwards is."""
SENDING = call_of(CellUnderTest.measure)
REMOVING = call_of(Deployment.__exit__)
CALLING = call_of(Proxy.begin)
"""A role on a node of a lab is about to be called."""
BETWEEN = call_of(StudyRunState.check)
"""Nothing is deployed, and the next test is about to begin."""
WRITING = call_of(StudyRunState._write)
KEEPING = call_of(StepJournal.keep)
"""A step of a study is about to be written into its journal."""


@dataclass(frozen=True)
class Moment:
    """A call at which a run stands still."""

    at: str
    test: str = ""
    """What the name of the test in the journal begins with; empty for any, also before the first."""
    call: int = 1
    after: bool = False
    attempt: int = 0
    """At the test; calls are counted in it. 0 for all of them."""

    @property
    def name(self) -> str:
        return f"{self.at} {self.test} {self.attempt} {self.call}"


class Paused:
    """The moments of one run, in the order in which they come."""

    def __init__(self, folder: Path, moments: Sequence[Moment]) -> None:
        self._file = folder / "pauses.json"
        rows = [{**asdict(each), "name": each.name} for each in moments]
        self._file.write_text(json.dumps(rows), encoding="utf-8")
        self._reached = Path(f"{self._file}.reached")
        self._reached.unlink(missing_ok=True)
        self._seen = 0

    @property
    def options(self) -> tuple[str, ...]:
        """Of Robot."""
        return ("--listener", f"{LISTENER}:{self._file}")

    def none(self) -> None:
        """Let a run that is resumed with the same options go on without a pause."""
        self._file.write_text("[]", encoding="utf-8")

    @contextmanager
    def at(self, moment: Moment, run: "subprocess.Popen[str]", seconds: float = 120) -> Iterator[None]:
        """Wait until the run stands still at the next moment, which is this one; it goes on afterwards."""

        def missing() -> str:
            if run.poll() is not None:
                pytest.fail(f"{moment.name}: the run has ended: {run.communicate()[0]}")
            names = self._reached.read_text(encoding="utf-8").splitlines() if self._reached.exists() else []
            if len(names) <= self._seen:
                return f"not reached; before: {names[-1:]}"
            assert names[self._seen] == moment.name
            stopped = ") T " in Path(f"/proc/{run.pid}/stat").read_text(encoding="utf-8")
            return "" if stopped else "it goes on"

        wait_until(moment.name, missing, seconds, pause_s=0.01)
        self._seen += 1
        try:
            yield
        finally:
            if run.poll() is None:
                run.send_signal(signal.SIGCONT)
