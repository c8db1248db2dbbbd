"""Declaration of Linux routers as NFs."""

from resources.libraries.python.model.driver import VETH, Form, FunctionDriver
from resources.libraries.python.model.measurements.disturbance import PartEvent

DRIVERS = (
    FunctionDriver(
        name="linux_router",
        label="Linux router",
        word="lnxip4",
        form=Form.NAMESPACE,
        simple=True,
        ipv6=True,
        shareable=True,
        kernel=(VETH,),
        events=frozenset(PartEvent) - {PartEvent.RELOAD},
        factory="resources.libraries.python.drivers.functions.linux_router.driver:LinuxRouters",
    ),
)
