"""Network functions as both ends of an OpenVPN tunnel: packets are encrypted and decrypted again."""

from resources.libraries.python.model.driver import TUN, Form, FunctionDriver, RequiredProgram, SimulatedNf
from resources.libraries.python.model.measurements.disturbance import PartEvent

DRIVERS = (
    FunctionDriver(
        name="openvpn",
        label="OpenVPN",
        word="openvpn",
        form=Form.PROGRAM_BESIDE,
        factory="resources.libraries.python.drivers.functions.openvpn.driver:OpenVpns",
        missing="resources.libraries.python.drivers.functions.openvpn.driver:missing",
        programs=(RequiredProgram("openvpn", "openvpn"), RequiredProgram("openssl", "openssl")),
        kernel=(TUN,),
        events=frozenset({PartEvent.KILL, PartEvent.PAUSE}),
        on_request=True,
        simulated=SimulatedNf(
            half_core_pps=0.08e6, sensitivity=0.90, half_pressure=0.50, pressure=0.95, memory_mib=24.0
        ),
    ),
)
