"""Linux bridges as the vSwitch."""

from resources.libraries.python.model.driver import BRIDGE, VETH, VSwitchDriver
from resources.libraries.python.model.measurements.disturbance import PartEvent
from resources.libraries.python.model.testbed.memory import NAMESPACE_MB, MemoryNeed

DRIVERS = (
    VSwitchDriver(
        name="linux_bridge",
        label="Linux bridge",
        factory="resources.libraries.python.drivers.vswitches.linux_bridge.driver:make",
        memory=lambda _, __: MemoryNeed(NAMESPACE_MB),
        interface_words={"linux_bridge": "veth"},
        kernel=(VETH, BRIDGE),
        copies=True,
        learns_macs=False,
        events=frozenset({PartEvent.KILL, PartEvent.RESTART, PartEvent.PAUSE, PartEvent.MOVE}),
        in_kernel=True,
    ),
)
