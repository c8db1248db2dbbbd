"""Declaration of IPsec tunnels as NFs."""

from resources.libraries.python.model.driver import Form, FunctionDriver, KernelFeature

DRIVERS = (
    FunctionDriver(
        name="ipsec",
        label="IPsec",
        word="ipsec",
        form=Form.PROGRAM_BESIDE,
        factory="resources.libraries.python.drivers.functions.ipsec.driver:Ipsecs",
        missing="resources.libraries.python.drivers.functions.ipsec.driver:missing",
        kernel=(
            KernelFeature("ESP", "INET_ESP", "esp4"),
            KernelFeature("XFRM interfaces", "XFRM_INTERFACE", "xfrm_interface"),
        ),
        on_request=True,
    ),
)
