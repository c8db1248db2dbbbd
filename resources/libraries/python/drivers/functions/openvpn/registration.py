"""Declaration of OpenVPN tunnels as NFs."""

from resources.libraries.python.model.driver import TUN, Form, FunctionDriver, RequiredProgram
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
    ),
)
