"""The driver of iperf3: a plan and trials in, results out."""

import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.generators.builtin.counters import settle
from resources.libraries.python.drivers.generators.iperf3 import command
from resources.libraries.python.drivers.generators.iperf3.results import trial_result
from resources.libraries.python.drivers.generators.iperf3.run import Runs
from resources.libraries.python.drivers.host.links import routing
from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.ownership.preflight import PreflightProblem
from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.counters import InterfaceCounters
from resources.libraries.python.model.nodes import TgNode
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.trial import Direction, HighestLoads, Trial, TrialResult
from resources.libraries.python.planning.names import GENERATOR

_MORE_THAN_IT_CAN_PPS = 2_000_000.0
_HEADROOM = 0.9
_VERSION_S = 10.0


class Iperf3Generator:
    """Sends TCP or UDP between sockets behind TG port 1 and TG port 2. Fulfils `roles.part.TrafficGenerator`.

    UDP goes both ways, with the load of a trial shared evenly; of TCP the load is that of the way forward, and the way
    back has the acknowledgements. Figures are those of the receivers. A trial never stops early, and lasts whole
    seconds.
    """

    def __init__(self, plan: Plan, fabric: Fabric, machine: MachineLock) -> None:
        """Prepare.

        Args:
            plan: Flows, ports and the generator's CPUs.
            fabric: Has the generator's namespace; started before `start`.
            machine: The machine's lock, held.

        Raises:
            Unsupported: Service instances share ports, whose counters cannot separate them.
        """
        if len({flow.rx_interface for flow in plan.flows}) < len(plan.flows):
            raise Unsupported("iperf3 needs a port pair of its own for every service instance")
        self._plan = plan
        self._fabric = fabric
        self._machine = machine
        self._forward = [flow for flow in plan.flows if flow.direction is Direction.FORWARD]
        self._runs = Runs(fabric, machine, plan.cores.cpus(GENERATOR)[0])
        self._folder: Path | None = None
        self._version = ""

    def start(self) -> None:
        """Make the ports usable by sockets.

        Raises:
            CommandFailed: The kernel refused something.
            CsitError: iperf3 cannot be run.
            NotReady: A port has no carrier.
        """
        self._fabric.wait_for_cables(GENERATOR)
        routing.route_between_ports(self._plan, self._fabric)
        self._folder = self._machine.folder("iperf3")
        self._version = _version()

    def run(self, trial: Trial) -> TrialResult:
        """Send to the end, wait until no more packets come, put reports and counters together.

        Raises:
            Unsupported: iperf3 cannot send that.
            CommandFailed: An end of iperf3 failed; its own words are in the text.
            NotReady: One did not end in time.
        """
        if self._folder is None:
            raise CsitError("iperf3 is not started")
        started, started_at = time.monotonic(), datetime.now(UTC).isoformat()
        before = self._counters()
        reports = self._runs.run(self._forward, trial, self._folder)
        settle(lambda: (sum(row.rx_packets for row in self._counters().values()),), None)
        return trial_result(
            trial,
            self._plan.flows,
            reports,
            before=before,
            after=self._counters(),
            started_at=started_at,
            total_duration_s=time.monotonic() - started,
        )

    def highest_loads(self, trial: Trial) -> HighestLoads:
        """What was sent when far more was asked for 1 s than iperf3 can send, less a tenth (aggregate pps)."""
        glut = trial.model_copy(update={"load_pps": _MORE_THAN_IT_CAN_PPS, "duration_s": 1.0})
        most_pps = _HEADROOM * self.run(glut).offered_pps
        return HighestLoads(offered_pps=most_pps, search_pps=most_pps)

    def facts(self) -> Mapping[str, str]:
        return {"generator": self._version} if self._version else {}

    def problems(self) -> tuple[str, ...]:
        """None: its programs last as long as a trial, which reports their errors."""
        return ()

    def stop(self) -> None:
        """End what still runs; what was changed in the namespace ends with it. Safe to call after a failure."""
        self._runs.stop()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _counters(self) -> Mapping[str, InterfaceCounters]:
        return self._fabric.counters([GENERATOR])


def missing() -> Iterator[PreflightProblem]:
    """What this machine lacks."""
    if shutil.which(command.PROGRAM) is None:
        yield PreflightProblem("iperf3 missing for the generator iperf3", "install it: apt-get install iperf3")


def _version() -> str:
    """`iperf 3.12`."""
    try:
        done = subprocess.run([command.PROGRAM, "--version"], capture_output=True, timeout=_VERSION_S, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise CsitError(f"{command.PROGRAM} cannot be run: {error}") from error
    return " ".join(done.stdout.decode(errors="replace").split()[:2])


def make(_: TgNode, context: DriverContext) -> Iperf3Generator:
    """Make the driver for a node."""
    return Iperf3Generator(context.plan, context.fabric, context.lock)


def missing_on(_: TgNode) -> Iterator[PreflightProblem]:
    """What this machine lacks for the generator of a node."""
    return missing()
