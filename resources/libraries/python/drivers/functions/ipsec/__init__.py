"""Network functions as both ends of an IPsec tunnel in the kernel: packets are encrypted and decrypted again."""

from resources.libraries.python.model.driver import Form, FunctionDriver, KernelFeature, SimulatedNf

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
        simulated=SimulatedNf(half_core_pps=0.2e6, sensitivity=0.90, half_pressure=0.50, pressure=0.95),
    ),
)
