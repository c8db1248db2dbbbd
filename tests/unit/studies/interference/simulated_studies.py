"""Studies of interference on the simulated testbed."""

from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.studies.interference.model import (
    Contender,
    Interference,
    InterferenceSpec,
    NfType,
)
from resources.libraries.python.studies.interference.run import InterferenceTest
from resources.libraries.python.testbed.kinds.simulated_testbed import SimulatedTestbed
from tests.builders import SIM

KINDS = {
    "gateway": (NfType.GATEWAY, NfKind("linux_gateway")),
    "monitor": (NfType.MONITOR, NfKind("pktstat")),
    "inspection": (NfType.INSPECTION, NfKind("ngrep")),
    "proxy": (NfType.NAT, NfKind("nginx_proxy")),
}


def spec(*names: str, **changes: object) -> InterferenceSpec:
    row = tuple(Contender(name=name, type=KINDS[name][0], kind=KINDS[name][1]) for name in names or KINDS)
    return InterferenceSpec.model_validate({"name": "pairs", "contenders": row, "frame": frame("512B"), **changes})


def study_of(
    asked: InterferenceSpec, world: SimulatedTestbed | None = None, topology: Topology = SIM
) -> InterferenceTest:
    world = world or SimulatedTestbed(topology)
    return InterferenceTest(topology, world, asked, world.environment())


def ran(asked: InterferenceSpec, world: SimulatedTestbed | None = None, topology: Topology = SIM) -> InterferenceTest:
    study = study_of(asked, world, topology=topology)
    study.plan()
    study.run()
    return study


def measured(asked: InterferenceSpec, world: SimulatedTestbed | None = None, topology: Topology = SIM) -> Interference:
    return ran(asked, world, topology).result()
