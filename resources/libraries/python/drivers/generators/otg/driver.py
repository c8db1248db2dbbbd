"""The driver of OTG servers: from a plan and trials to flows on a server, from its metrics to results."""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.generators.otg import SERVERS, Otg, flows
from resources.libraries.python.drivers.generators.otg.client import CONTROLLER, OtgClient, OtgRefusal, stopped
from resources.libraries.python.drivers.generators.overload import SearchedByTrials
from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.programs.waiting import CABLES_WITHIN_S, wait_until
from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.bounds import quoted
from resources.libraries.python.model.findings import PreflightProblem
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.testbed.nodes import TgNode
from resources.libraries.python.planning.names import GENERATOR

_LONGER_S = 30.0
_POLL_S, _QUIET_S, _SETTLE_S = 0.05, 0.1, 2.0
_CARRIER_POLL_S = 0.2


class OtgGenerator(SearchedByTrials):
    """Sends and counts by an OTG server that reaches the generator's ports.

    A trial never stops early. Latency has minimum, mean and maximum.
    """

    def __init__(
        self, plan: Plan, settings: Otg, fabric: Fabric | None = None, machine: MachineLock | None = None
    ) -> None:
        """Prepare.

        `fabric`: Has the generator's ports; started before `start`. None where only the server reaches them.
        `machine`: The lock, held, of the machine that has these ports; None where there is none.
        """
        self._plan, self._fabric, self._machine, self._settings = plan, fabric, machine, settings
        self._ports = flows.server_ports(plan, settings.ports)
        self._client: OtgClient | None = None
        self._version = ""

    def start(self) -> None:
        """Reach the server, stop what this driver has left sending there, and wait until the ports have a carrier.

        Raises:
            Unsupported: snappi is not installed, or the server counts no packets of flows.
            InUse: The server sends flows of another program.
            NotReady: A port gets no carrier.
            CsitError: The server is not there, not trusted, or does not reach the ports.
        """
        client = OtgClient(self._settings)
        self._version = client.version()
        client.own_running()  # flows of another program go on: `stop` does nothing without a client
        if self._machine is not None:
            self._machine.claim(SERVERS, self._settings)
        self._client = client
        if self._fabric is not None:
            self._fabric.wait_for_cables(GENERATOR)
        client.configure(flows.configuration((), self._ports))
        client.check_counters()
        # The other ends have been taken into use just before, and the kernel here knows only ports of this machine.
        wait_until(f"cables of {GENERATOR}", lambda: _down(client), CABLES_WITHIN_S, pause_s=_CARRIER_POLL_S)

    def run(self, trial: Trial) -> TrialResult:
        """Send for the time of a trial, wait until no more packets come, read the metrics.

        Raises:
            Unsupported: An OTG server cannot send that.
            NotReady: Its flows do not end in time.
            CsitError: It refuses, or is gone.
        """
        if self._client is None:
            raise CsitError("the OTG server is not started")
        started, started_at = time.monotonic(), datetime.now(UTC).isoformat()
        sent = flows.sent_flows(
            self._plan.flows, trial, latency=self._settings.latency, sender=f"{CONTROLLER} {os.getpid()}"
        )
        self._client.configure(flows.configuration(sent, self._ports, trial.duration_s))
        self._client.transmit("start")
        found = self._finished(self._client, sent, trial)
        return flows.trial_result(
            trial,
            self._plan.flows,
            sent,
            found,
            started_at=started_at,
            total_duration_s=time.monotonic() - started,
        )

    def _finished(self, client: OtgClient, sent: list[flows.SentFlow], trial: Trial) -> dict[str, flows.OtgFigures]:
        """Figures once flows have stopped and counters no longer move."""
        time.sleep(trial.duration_s)  # nothing is asked meanwhile: the answer would take time of the server's CPU
        found: dict[str, flows.OtgFigures] = {}

        def running() -> str:
            found.update(flows.figures(client.flow_metrics(), sent))
            return ", ".join(name for name, row in found.items() if row.running)

        try:
            wait_until("the end of the OTG server's flows", running, _LONGER_S, pause_s=_POLL_S)
        except CsitError:
            with suppress(CsitError):  # the server may be gone
                client.transmit("stop")
            raise
        changed = begun = time.monotonic()
        while any(row.received < row.sent for row in found.values()):
            now = time.monotonic()
            if now - changed > _QUIET_S or now - begun > _SETTLE_S:
                break
            time.sleep(_POLL_S)
            before = dict(found)
            running()
            changed = time.monotonic() if found != before else changed
        return found

    def facts(self) -> Mapping[str, str]:
        if self._client is None:
            return {}
        return {
            "generator": f"OTG server {self._version}",
            "server": f"{self._settings.location}{'' if self._settings.verify else ', certificate not checked'}",
            "latency": "as the OTG server measures it: minimum, mean and maximum",
        }

    def problems(self) -> tuple[str, ...]:
        if self._client is None:
            return ("the OTG server is not started",)
        try:
            self._client.version()
        except CsitError as error:
            return (str(error),)
        return ()

    def stop(self) -> None:
        """Stop traffic, and take the ports from the server."""
        client, self._client = self._client, None
        if client is not None:
            client.transmit("stop")
            client.configure({})
            if self._machine is not None:
                self._machine.release(SERVERS, [self._settings])


def _down(client: OtgClient) -> str:
    down = client.ports_down()
    return f"{len(down)} without carrier, {quoted(down[0])} among them" if down else ""


def make(node: TgNode, context: DriverContext) -> OtgGenerator:
    """Make the driver for a node."""
    return OtgGenerator(context.plan, node.settings(Otg), context.fabric, context.lock)


class OtgApi:
    """The server of a lab, driven by the controller. Fulfils `roles.part.GeneratorApi`."""

    def __init__(self, node: TgNode) -> None:
        self._node, self._settings = node, node.settings(Otg)

    @property
    def address(self) -> str:
        return self._settings.location.rstrip("/").lower()

    def problems(self) -> tuple[PreflightProblem, ...]:
        return tuple(missing_on(self._node))

    def open(self) -> tuple[str, ...]:
        """Stop what an earlier run has left sending, and try whether the server has the ports.

        Raises:
            Unsupported: It answers, and has not; its words are in the text.
            InUse: It sends flows of another program.
            CsitError: It is not there, or not trusted.
        """
        client = OtgClient(self._settings)
        if running := client.own_running():
            client.transmit("stop")
        ports = {
            name: flows.server_port(name, each.device, self._settings.ports)
            for name, each in self._node.interfaces.items()
        }
        try:
            client.configure(flows.configuration((), ports))
        except OtgRefusal as error:
            raise Unsupported(f"{error}; correct device or otg.ports of {', '.join(ports)}") from error
        client.configure({})
        return (stopped(running, self._settings),) if running else ()

    def generator(self, plan: Plan) -> OtgGenerator:
        return OtgGenerator(plan, self._settings)


def missing_on(node: TgNode) -> Iterator[PreflightProblem]:
    """Requirements of a node's generator that this machine lacks: snappi, or a server that answers."""
    try:
        client = OtgClient(node.settings(Otg))
    except Unsupported:
        yield PreflightProblem("snappi missing for the generator otg", "install it: ./csit setup requirements-otg")
        return
    except CsitError as error:
        yield PreflightProblem(str(error), "correct otg.ca_file")
        return
    try:
        client.version()
        client.check_counters()
    except Unsupported as error:
        yield PreflightProblem(str(error), "choose a server that counts the packets of flows: results are made of them")
    except CsitError as error:
        yield PreflightProblem(str(error), "start the server, or say where it is by otg.location, verify and ca_file")
