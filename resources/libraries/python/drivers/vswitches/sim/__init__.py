"""The simulated vSwitch, which is as large as VPP in FD.io CSIT's tests."""

from resources.libraries.python.model.driver import VSwitchDriver
from resources.libraries.python.model.measurements.disturbance import PartEvent
from resources.libraries.python.model.testbed.memory import MemoryNeed

HUGE_PAGES_MB = 1024
"""FD.io CSIT sets 215,040 buffers of 2,496 bytes with SMT on, which is 512 MB of huge pages
(methodology_vpp_startup_settings), and as much again for rings and shared memory."""
HEAP_MB = 512
"""Main heap; FD.io CSIT's startup file for VMs says 512M."""

DRIVERS = (
    VSwitchDriver(
        name="sim",
        label="simulated vSwitch",
        memory=lambda _, __: MemoryNeed.huge(HUGE_PAGES_MB, HEAP_MB),
        interface_words={"sim": "mif"},
        copies=True,
        events=frozenset({PartEvent.KILL, PartEvent.RESTART}),
        vlan_problem=lambda _: "the vSwitch sim knows no VLANs here; use link or mac",
    ),
)
