"""Network functions that are VPPs, a process or a container each."""

from resources.libraries.python.drivers.vpp import PROGRAM, Vpp, need, reload_problem
from resources.libraries.python.model.driver import IPV4, PACKET, Form, FunctionDriver, Medium, Traffic
from resources.libraries.python.model.measurements.disturbance import PartEvent
from resources.libraries.python.model.request.cell import ServiceType
from resources.libraries.python.model.request.kinds import Limits, NfKind
from resources.libraries.python.model.testbed.memory import NAMESPACE_MB, MemoryNeed
from resources.libraries.python.model.testbed.nodes import DutNode


def _memory(dut: DutNode, _: NfKind, __: ServiceType, ___: Limits) -> MemoryNeed:
    return MemoryNeed(NAMESPACE_MB) + need(dut.settings(Vpp))


DRIVERS = (
    FunctionDriver(
        name="vpp",
        label="VPP",
        options={"vpp": Vpp},
        word="vppip4",
        form=Form.PROGRAM,
        simple=True,
        takes=IPV4 | {Traffic.IPV6},
        polls=None,
        joins_late=True,
        factory="resources.libraries.python.drivers.functions.vpp.driver:VppRouters",
        missing="resources.libraries.python.drivers.functions.vpp.driver:missing",
        programs=(PROGRAM,),
        words=("vppctl",),
        kernel=(PACKET,),
        events=frozenset(PartEvent),
        reload_problem=reload_problem,
        starts_on_main_cpu=True,
        memory=_memory,
        medium_between=Medium.MEMIF,
    ),
)
