"""`./csit bisect` on the simulated testbed, killed and asked to end: no step is lost, and no installation goes on."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from csit_utils.bisection.run import BisectionJournal
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from tests.integration.robot_runs import PROJECT

pytestmark = pytest.mark.parallel
_WITHIN_S = 600.0
_SAME = 3
"""Exit status: good and bad do not differ, as on a simulated testbed."""


class Bisection:
    """A bisection in a folder, whose installation can be held."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.hold, self.installing, self.left = folder / "hold", folder / "installing", folder / "left"
        # What it leaves running is out of its group and its session, as daemons are.
        left = f"echo $$ >{self.left}.new; mv {self.left}.new {self.left}; exec sleep 600"
        install = (
            f"setsid sh -c '{left}' >/dev/null 2>&1 & while ! [ -e {self.left} ]; do sleep 0.01; done; "
            f'echo $$ >{self.installing}; while [ -e {self.hold} ]; do sleep 0.05; done; : "$1"'
        )
        spec = {
            "source": {"versions": ["1.0", "1.1", "1.2"]},
            "install": ["sh", "-c", install, "install", "{revision}"],
            "topology": str(PROJECT / "topologies" / "sim.yaml"),
            "cell": "CSC 1x1 1c",
            "change": "10%",
        }
        (folder / "spec.yaml").write_text(yaml.safe_dump(spec), encoding="utf-8")

    @contextmanager
    def start(self) -> Iterator["subprocess.Popen[str]"]:
        """Run the command; where the test fails, it is killed."""
        # A shell starts its background commands with SIGINT ignored, and tests may be one of these.
        argv = ["env", "--default-signal=INT", sys.executable, "-m", "csit_utils"]
        argv += ["bisect", "spec.yaml", "-o", "out", "--format", "json"]
        environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
        with subprocess.Popen(
            argv, cwd=self._folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as run:
            try:
                yield run
            except BaseException:
                run.kill()
                raise

    @property
    def journal(self) -> list[str]:
        path = self._folder / "out" / BisectionJournal.FILE
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def wait(self, what: str, ready: Callable[[], object]) -> None:
        wait_until(what, lambda: "" if ready() else "not yet", _WITHIN_S, pause_s=0.005)

    def wait_installing(self) -> int:
        """Wait for an installation; return its process."""
        self.wait("an installation", lambda: self.installing.exists() and self.installing.read_text().strip())
        return int(self.installing.read_text())


@pytest.fixture
def bisection(tmp_path: Path) -> Bisection:
    return Bisection(tmp_path)


def test_a_killed_one_goes_on_with_the_next_step(bisection: Bisection) -> None:
    kept: list[str] = []
    for steps in (2, 4):
        with bisection.start() as run:
            bisection.wait("steps", lambda least=steps: len(bisection.journal) > least)
            run.kill()
        assert run.returncode == -signal.SIGKILL
        assert bisection.journal[: len(kept)] == kept
        kept = bisection.journal
    with bisection.start() as run:
        out, err = run.communicate(timeout=_WITHIN_S)
    assert (run.returncode, json.loads(out)["answer"]) == (_SAME, "not in these revisions"), err
    assert f"{len(kept) - 1} steps of an earlier run are continued" in err
    assert bisection.journal[: len(kept)] == kept


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_an_installation_ends_with_its_bisection(bisection: Bisection, number: signal.Signals) -> None:
    bisection.hold.touch()
    with bisection.start() as run:
        installation = bisection.wait_installing()
        run.send_signal(number)
        _, err = run.communicate(timeout=_WITHIN_S)
    assert run.returncode not in (0, 70, _SAME) and "Traceback" not in err, err
    left = bisection.left.read_text().strip()
    for process in (installation, left):
        bisection.wait("the end of the installation", lambda process=process: not Path(f"/proc/{process}").exists())
    bisection.hold.unlink()
    bisection.left.unlink()
    with bisection.start() as run:
        run.communicate(timeout=_WITHIN_S)
    assert run.returncode == _SAME


@pytest.mark.parametrize("both", [False, True], ids=["the supervisor alone", "the bisection too"])
def test_what_an_installation_of_a_killed_supervisor_left_does_not_run_beside_the_next_one(
    bisection: Bisection, both: bool
) -> None:
    bisection.hold.touch()
    with bisection.start() as run:
        status = Path(f"/proc/{bisection.wait_installing()}/status").read_text(encoding="utf-8")
        left = Path("/proc", bisection.left.read_text().strip())
        if both:
            run.kill()
        bisection.left.unlink()
        bisection.hold.unlink()
        os.kill(int(status.split("PPid:")[1].split()[0]), signal.SIGKILL)
        _, err = run.communicate(timeout=_WITHIN_S)
    if both:
        assert left.exists()
        with bisection.start() as run:
            _, err = run.communicate(timeout=_WITHIN_S)
    assert (run.returncode, left.exists()) == (_SAME, False), err


def test_what_an_installation_left_running_ends_with_it(bisection: Bisection) -> None:
    bisection.hold.touch()
    with bisection.start() as run:
        bisection.wait_installing()
        left = Path("/proc", bisection.left.read_text().strip())
        assert left.exists()
        bisection.hold.unlink()
        bisection.wait("the end of what the installation started", lambda: not left.exists())
        run.communicate(timeout=_WITHIN_S)
    assert run.returncode == _SAME


def test_an_installation_that_is_killed_is_tried_once_more(bisection: Bisection) -> None:
    bisection.hold.touch()
    with bisection.start() as run:
        os.kill(bisection.wait_installing(), signal.SIGKILL)
        bisection.hold.unlink()
        out, err = run.communicate(timeout=_WITHIN_S)
    assert (run.returncode, json.loads(out)["answer"]) == (_SAME, "not in these revisions"), err
    assert not any('"skipped"' in line for line in bisection.journal)
