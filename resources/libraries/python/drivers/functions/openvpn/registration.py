"""Declaration of OpenVPN tunnels as NFs."""

from resources.libraries.python.model.driver import FunctionDriver, RequiredProgram
from resources.libraries.python.model.kinds import NfKind

DRIVERS = (
    FunctionDriver(
        name="openvpn",
        label="OpenVPN",
        kind=NfKind.OPENVPN,
        word="openvpn",
        factory="resources.libraries.python.drivers.functions.openvpn.driver:make",
        missing="resources.libraries.python.drivers.functions.openvpn.requirements:missing_on",
        programs=(RequiredProgram("openvpn", "openvpn"), RequiredProgram("openssl", "openssl")),
        on_request=True,
    ),
)
