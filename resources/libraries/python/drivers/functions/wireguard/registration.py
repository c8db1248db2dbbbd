"""Declaration of WireGuard tunnels as NFs."""

from resources.libraries.python.model.driver import Form, FunctionDriver, KernelFeature, Leftover, RequiredProgram
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
