"""Routing in the Linux kernel, a network namespace each."""

from resources.libraries.python.model.driver import IPV4, VETH, Form, FunctionDriver, SimulatedNf, Traffic
from resources.libraries.python.model.measurements.disturbance import PartEvent

DRIVERS = (
    FunctionDriver(
        name="linux_router",
        label="Linux router",
        word="lnxip4",
        form=Form.NAMESPACE,
        simple=True,
        takes=IPV4 | {Traffic.IPV6},
        shareable=True,
        kernel=(VETH,),
        events=frozenset(PartEvent) - {PartEvent.RELOAD},
        simulated=SimulatedNf(half_core_pps=0.6e6, sensitivity=0.12, half_pressure=0.02, pressure=0.02),
        factory="resources.libraries.python.drivers.functions.linux_router.driver:LinuxRouters",
    ),
)
