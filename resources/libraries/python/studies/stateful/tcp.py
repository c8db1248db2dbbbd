"""TCP connections of a peer tool: through the network functions of a cell, and without them."""

from collections.abc import Mapping

from resources.libraries.python.driver_registry import generators
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.measurements.trial import Protocol, Trial, TrialResult
from resources.libraries.python.model.request.cell import MOST_FLOWS, Cell, TestType
from resources.libraries.python.model.request.goal import SearchProfile
from resources.libraries.python.model.result import MeasurementRequest
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.loop_back import loop_back_plan
from resources.libraries.python.search.session import judged
from resources.libraries.python.studies.stateful.connection_cell import LEAST_CPS, ConnectionCell
from resources.libraries.python.studies.stateful.model.record import ConnectionTrial, EstablishmentRate, TcpConnections
from resources.libraries.python.studies.stateful.model.spec import StatefulSpec
from resources.libraries.python.studies.stateful.rate import ConnectionLimits, search_rate
from resources.libraries.python.testbed.deployment.cell import CellUnderTest
from resources.libraries.python.testbed.deployment.loop_back import looped_back
from resources.libraries.python.testbed.deployment.parts import Testbed

_CALIBRATION_S = 0.3


class TcpPeer:
    """The peer tool of a testbed; remembers what it does without network functions.

    Args:
        topology: The testbed.
        world: The same, open.
        spec: The study.
        profile: Of the search.
    """

    def __init__(self, topology: Topology, world: Testbed, spec: StatefulSpec, profile: SearchProfile) -> None:
        self._world, self._spec, self._profile = world, spec, profile
        chosen = generators()[topology.tg.generator.driver]
        if Protocol.TCP not in chosen.connections:
            able = [each for each in generators().values() if Protocol.TCP in each.connections and each.factory]
            chosen = next(each for each in able if spec.tcp_peer in {None, each.name})
        self._driver = chosen
        tg = topology.tg.model_copy(
            update={"generator": topology.tg.generator.model_copy(update={"driver": chosen.name})}
        )
        self._topology = topology.model_copy(update={"nodes": {**topology.nodes, topology.tg_name: tg}})
        self._alone: dict[int, EstablishmentRate | str] = {}

    def cell(self, cell: Cell) -> CellUnderTest:
        """Return a cell that the peer loads; not deployed."""
        asked = MeasurementRequest(
            test_type=TestType.MRR,
            cell=cell,
            frame=self._spec.frame,
            profile=self._profile,
            generator=self._driver.name,
        )
        return CellUnderTest(self._topology, self._world, asked)

    def measure(self, deployed: CellUnderTest) -> tuple[TcpConnections, tuple[ConnectionTrial, ...]]:
        """Search the rate of a deployed cell.

        Returns:
            The result, without the rate of the peer alone, and all trials.

        Raises:
            CsitError: Connections are not established, or the peer failed.
        """
        connections = ConnectionCell(deployed, self._spec, Protocol.TCP)
        connections.check()
        calibration = self._trial(Trial(load_pps=0.0, duration_s=_CALIBRATION_S, frame=self._spec.frame))
        parts = deployed.deployment.parts
        rate = search_rate(
            connections.open_for_rate,
            self._profile,
            self._spec.frame,
            self._room(parts.generator.highest_loads(calibration).offered_pps, connections.limit),
            parts.clock,
            instances=connections.instances,
            least_cps=LEAST_CPS[Protocol.TCP],
        )
        found = TcpConnections(peer=self._name(parts.generator.facts()), rate=rate)
        return found, tuple(connections.trials)

    def with_rate_alone(self, found: TcpConnections, instances: int) -> TcpConnections:
        """Add the rate of the peer with its ports joined to each other; call it with nothing deployed."""
        if instances not in self._alone:
            try:
                self._alone[instances] = self._rate_alone(instances)
            except CsitError as error:
                self._alone[instances] = str(error)
        alone = self._alone[instances]
        if isinstance(alone, str):
            return found.model_copy(update={"unqualified": alone})
        return found.model_copy(update={"alone": alone})

    def _rate_alone(self, instances: int) -> EstablishmentRate:
        plan = loop_back_plan(self._topology, self._world.layout, instances * max(1, self._driver.loops_back))
        with looped_back(plan, self._world, self._spec.frame, self._driver.name) as looped:
            # Simulated ones have a clock of their own, of which a loop-back has no use.
            spent = [0.0]

            def run(trial: Trial) -> TrialResult:
                result = judged(looped.generator.run(self._trial(trial)))
                spent[0] += result.total_duration_s
                return result.model_copy(update={"trial": trial})

            calibration = self._trial(Trial(load_pps=0.0, duration_s=_CALIBRATION_S, frame=self._spec.frame))
            return search_rate(
                run,
                self._profile,
                self._spec.frame,
                self._room(looped.generator.highest_loads(calibration).offered_pps, None),
                lambda: spent[0],
                instances=instances,
                least_cps=LEAST_CPS[Protocol.TCP],
            )

    def _room(self, offered_cps: float, limit: int | None) -> ConnectionLimits:
        own = self._driver.most_connections or MOST_FLOWS
        fitting = own if limit is None else int(self._spec.fill * limit)
        if fitting < own:
            return ConnectionLimits(
                offered_cps, fitting, f"fills more than {self._spec.fill:.0%} of a table of {limit:,} entries"
            )
        return ConnectionLimits(offered_cps, own, f"needs more ports than the {own:,} that a client has for them")

    @staticmethod
    def _trial(trial: Trial) -> Trial:
        return trial.model_copy(update={"protocol": Protocol.TCP, "purpose": "connections"})

    def _name(self, facts: Mapping[str, str]) -> str:
        return facts.get("generator", self._driver.label)
