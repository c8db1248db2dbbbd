"""What a run shows on the console while it goes on."""

import time
from collections.abc import Mapping

from resources.libraries.python.model.result import Asked, Result
from resources.libraries.python.search.throughput import Progress
from resources.libraries.python.search.verdict import verdict_text
from resources.libraries.python.studies.density.planning.estimate import LATENCY_LOADS, estimate_s
from resources.libraries.python.studies.shared.console import Console, human_rate, human_time

_OVERHEAD_S = 0.05
_DEPLOY_S = 1.0


class ConsoleProgress:
    """Test k of n of the suite, bounds so far, time left."""

    def __init__(self) -> None:
        self._console = Console()
        self._suite = ""
        self._tests = 0
        self._started: list[float] = []
        self._finished: list[float] = []
        self._seen = 0
        self._to_come = 0
        self._asked: Asked | None = None
        self._simulated = False
        self._containers = ""

    def suite(self, name: str, tests: int, carried: int = 0) -> None:
        """A suite with so many rows begins, of which some have been measured before the run was resumed."""
        self._suite, self._tests = name, tests
        self._started, self._finished = [], []
        self._seen, self._to_come = 0, carried
        if carried:
            self._console.line(f"{name}: {carried} of {tests} tests are carried over")

    def carried(self) -> None:
        """A test that was measured before has passed by in no time."""
        self._seen += 1
        self._to_come = max(0, self._to_come - 1)

    def left_out(self) -> None:
        """A test of a cell in quarantine has passed by."""
        self._seen += 1

    def broken(self, reason: str, *, again: bool) -> None:
        """The present test broke the system under test."""
        self._console.line(f"{self._head()}: {reason}; {'once more' if again else 'given up'}")
        self._started[-1] = time.monotonic()  # so that others are not expected to take twice as long

    def stopped(self, reason: str) -> None:
        """The run ends before its time."""
        self._console.line(reason)

    def test(self, asked: Asked, *, simulated: bool) -> None:
        """A test begins; in a simulated world the time that a search tells of is not a person's."""
        self._asked = asked
        self._simulated = simulated
        self._started.append(time.monotonic())
        self._console.line("")  # Robot's own line of the test may still be open
        self._console.status(f"{self._head()}: deploying")

    def deployed(self, facts: Mapping[str, Mapping[str, str]]) -> None:
        """A cell is deployed: say what NFs run in, where that is an engine's choice and has not been said."""
        containers = facts.get("functions", {}).get("containers", "")
        if containers and containers != self._containers:
            self._containers = containers
            self._console.line(f"{self._head()}: containers of NFs: {containers}")

    def search(self, progress: Progress) -> None:
        """A search has new bounds."""
        bounds = ", ".join(
            f"{name} {human_rate(low)} .. {human_rate(high)}" for name, (low, high) in progress.bounds.items()
        )
        self._console.status(f"{self._head()}: trial {progress.trials}, {bounds}; {self._left(progress)}")

    def done(self, result: Result) -> None:
        """A test has ended."""
        self._finished.append(time.monotonic() - self._started[-1])
        head = self._head()
        self._asked = None
        found = [
            f"{name} {human_rate(goal.lower_pps)}" if goal.lower_pps is not None else f"{name} not reached"
            for name, goal in (("NDR", result.ndr), ("PDR", result.pdr), ("SOAK", result.soak))
            if goal is not None
        ]
        if result.plr is not None:
            found.append(f"PLR {human_rate(result.plr.mean_pps)} ± {human_rate(result.plr.stdev_pps)}")
        rates = (("MRR", result.mrr), ("ORR", result.orr))
        found += [f"{name} {human_rate(rate.mean_pps)}" for name, rate in rates if rate is not None]
        present = (("NDR", result.ndr), ("PDR", result.pdr), ("SOAK", result.soak), *rates)
        numbers = {name: result.verdict.of(name) for name, number in present if number is not None}
        verdict = verdict_text(numbers or {"": result.verdict.kinds})
        note = " (simulated)" if result.simulated else ""
        took = human_time(self._finished[-1])
        self._console.line(f"{head}: {', '.join(found) or result.message or 'no result'}{note} [{verdict}] {took}")

    def _head(self) -> str:
        asked = self._asked
        what = ""
        if asked is not None:
            cell = asked.cell
            what = f" {cell.service_type} {cell.locator} NF-{cell.size_name} vSwitch-{cell.vs_dtc}c {asked.frame.name}"
        return f"{self._suite} {self._number}/{self._tests}{what}"

    @property
    def _number(self) -> int:
        """Of the present test in its suite."""
        return len(self._started) + self._seen

    def _left(self, progress: Progress) -> str:
        """Time left in the suite: of this test by its search, of others by those that have ended, else by estimate."""
        if self._asked is None:
            return ""
        expected = estimate_s(
            self._asked.profile, self._asked.test_type, trial_overhead_s=_OVERHEAD_S, deploy_s=_DEPLOY_S
        )
        each = sum(self._finished) / len(self._finished) if self._finished else expected
        running = progress.remaining_s + LATENCY_LOADS * self._asked.profile.latency_duration_s
        if self._simulated:
            running = max(0.0, each - (time.monotonic() - self._started[-1]))
        left = running + each * max(0, self._tests - self._number - self._to_come)
        return f"about {human_time(left)} left"
