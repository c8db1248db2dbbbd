"""The driver of D-ITG: a plan and trials in, results out."""

import logging
import subprocess
import time
from collections.abc import Mapping
from datetime import UTC, datetime

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.generators.builtin.counters import settle
from resources.libraries.python.drivers.generators.ditg import flows
from resources.libraries.python.drivers.generators.ditg.programs import SENDER, DitgPrograms
from resources.libraries.python.drivers.generators.ditg.results import trial_result
from resources.libraries.python.drivers.generators.ditg.watch import Counters, PortReading, Watch, seconds_of_day
from resources.libraries.python.drivers.host.links import routing
from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.nodes import TgNode
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.trial import Direction, HighestLoads, Protocol, Trial, TrialResult
from resources.libraries.python.planning.names import GENERATOR

_LOG = logging.getLogger(__name__)
_SIZES = "sizes"
_LEAST_S = 0.5
"""The shortest run of a sender."""
_MAXIMUM_S = 1.0
_MORE_THAN_IT_CAN_PPS = 400_000.0
_HEADROOM = 0.9
_MOST_FLOWS = 64
"""Maximum number of flows of a service instance: each is a thread of the sender, and one of the receiver."""


class DitgGenerator:
    """Sends by D-ITG between sockets at both ends, and back. Fulfils `roles.part.TrafficGenerator`.

    The receiver sends every packet back, so both directions carry the same; half of a round trip is one way. Counts are
    of the network interfaces; delays are of all packets in D-ITG's logs. A trial never stops early.
    """

    def __init__(self, plan: Plan, fabric: Fabric, machine: MachineLock) -> None:
        """Prepare.

        Args:
            plan: Flows, ports and the generator's CPUs; `Flow.sources` is how many flows an instance has.
            fabric: Has the generator's namespace; started before `start`.
            machine: The machine's lock, held.

        Raises:
            Unsupported: Service instances share ports, whose counters cannot separate them; or there are
                too many flows.
        """
        if len({flow.rx_interface for flow in plan.flows}) < len(plan.flows):
            raise Unsupported("D-ITG needs a port pair of its own for every service instance")
        if (most := max(flow.sources for flow in plan.flows)) > _MOST_FLOWS:
            raise Unsupported(
                f"D-ITG takes a thread for each flow: at most {_MOST_FLOWS} for a service instance, "
                f"and the plan has {most}"
            )
        self._plan = plan
        self._fabric = fabric
        self._programs = DitgPrograms(fabric, machine, plan.cores.cpus(GENERATOR)[0])
        self._senders = [flow.tx_interface for flow in plan.flows if flow.direction is Direction.FORWARD]
        self._version = ""

    def start(self) -> None:
        """Make the ports usable by sockets, start logger and receiver.

        Raises:
            CommandFailed: The kernel refused something.
            CsitError: A program cannot be started, or ends.
            NotReady: One does not listen in time, or a port has no carrier.
        """
        self._fabric.wait_for_cables(GENERATOR)
        routing.route_between_ports(self._plan, self._fabric)
        self._programs.start()
        self._version = _version()
        _LOG.info("D-ITG started: %s", self._version)

    def run(self, trial: Trial) -> TrialResult:
        """Send, wait until the senders have ended and no more packets come, read counters and logs.

        Raises:
            Unsupported: Frames are smaller than D-ITG can make them.
            CommandFailed: A sender failed.
            NotReady: One did not end in time.
        """
        started, started_at = time.monotonic(), datetime.now(UTC).isoformat()
        longer = trial if trial.duration_s >= _LEAST_S else trial.model_copy(update={"duration_s": _LEAST_S})
        script = flows.script(self._plan, longer, _SIZES)
        sizes = flows.payloads(trial.frame, trial.protocol or Protocol.UDP)
        (self._programs.folder / _SIZES).write_text("".join(f"{size}\n" for size in sizes), encoding="ascii")
        before = PortReading(seconds_of_day(), self._counters())
        watch = Watch(self._counters, lambda now: self._sent(now) > self._sent(before.counters))
        watch.start()
        try:
            done = self._programs.run(script, longer.duration_s, self._senders)
            settle(lambda: (self._received(self._counters()),), None)
        finally:
            readings = watch.stop()
        after = PortReading(seconds_of_day(), self._counters())
        result = trial_result(
            longer,
            self._plan.flows,
            [before, *readings, after],
            run=done,
            instances=script.instances,
            started_at=started_at,
            total_duration_s=time.monotonic() - started,
        )
        return result.model_copy(update={"trial": trial})

    def highest_loads(self, trial: Trial) -> HighestLoads:
        """What left the ports when far more was asked for 1 s than D-ITG can send, less a tenth (aggregate pps)."""
        glut = trial.model_copy(update={"load_pps": _MORE_THAN_IT_CAN_PPS, "duration_s": _MAXIMUM_S})
        result = self.run(glut)
        most_pps = _HEADROOM * result.offered_pps
        return HighestLoads(offered_pps=most_pps, search_pps=most_pps)

    def facts(self) -> Mapping[str, str]:
        """Its version, and what counts and delays are."""
        if not self._version:
            return {}
        return {"generator": self._version, "delay": "half of the round trip of every logged packet"}

    def problems(self) -> tuple[str, ...]:
        return self._programs.problems()

    def stop(self) -> None:
        """End all programs; what was changed in the namespace ends with it. Safe to call after a failure."""
        self._programs.stop()

    def _counters(self) -> Counters:
        return self._fabric.counters([GENERATOR])

    def _sent(self, counters: Counters) -> int:
        return sum(counters[name].tx_packets for name in self._senders)

    def _received(self, counters: Counters) -> int:
        return sum(row.rx_packets for row in counters.values())


def _version() -> str:
    """The first line that the sender says of itself."""
    done = subprocess.run([SENDER, "-h"], capture_output=True, timeout=10, check=False)
    lines = [line for line in done.stdout.decode(errors="replace").splitlines() if "version" in line]
    if not lines:
        raise CsitError(f"{SENDER} -h prints no version")
    return f"D-ITG {lines[0].partition('version ')[2].strip()}"


def make(_: TgNode, context: DriverContext) -> DitgGenerator:
    """Make the driver for a node."""
    return DitgGenerator(context.plan, context.fabric, context.lock)
