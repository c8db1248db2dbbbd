"""Network functions as both ends of a WireGuard tunnel in user space: packets are encrypted and decrypted again."""

from resources.libraries.python.model.driver import (
    Form,
    FunctionDriver,
    KernelFeature,
    Leftover,
    RequiredProgram,
    SimulatedNf,
)
from resources.libraries.python.model.measurements.disturbance import PartEvent

DRIVERS = (
    FunctionDriver(
        name="wireguard",
        label="WireGuard",
        word="wireguard",
        form=Form.PROGRAM_BESIDE,
        factory="resources.libraries.python.drivers.functions.wireguard.driver:WireGuards",
        missing="resources.libraries.python.drivers.functions.wireguard.driver:missing_on",
        programs=(RequiredProgram("wg", "wireguard-tools"),),
        kernel=(KernelFeature("WireGuard", "WIREGUARD", "wireguard", instead="wireguard-go takes its place"),),
        events=frozenset({PartEvent.KILL, PartEvent.PAUSE}),
        on_request=True,
        simulated=SimulatedNf(
            half_core_pps=0.1e6, sensitivity=0.90, half_pressure=0.50, pressure=0.95, memory_mib=24.0
        ),
    ),
)
SOCKETS = "wireguard"
LEFTOVERS = (
    Leftover(
        key=SOCKETS,
        label="control socket of the WireGuard device",
        remove="resources.libraries.python.drivers.functions.wireguard.driver:remove_left",
    ),
)
