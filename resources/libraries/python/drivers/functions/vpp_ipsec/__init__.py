"""Network functions as both ends of an IPsec tunnel in a VPP: packets are encrypted and decrypted again."""

from dataclasses import replace

from resources.libraries.python.drivers.functions.vpp import DRIVERS as ROUTERS
from resources.libraries.python.model.driver import SimulatedNf

DRIVERS = tuple(
    replace(
        router,
        name="vpp_ipsec",
        label="VPP IPsec",
        word="vppipsec",
        words=(*router.words, "IPsec"),
        simple=False,
        on_request=True,
        simulated=SimulatedNf(half_core_pps=1.0e6, sensitivity=0.90, half_pressure=0.50, pressure=0.95),
        factory="resources.libraries.python.drivers.functions.vpp_ipsec.driver:VppTunnels",
        missing="resources.libraries.python.drivers.functions.vpp_ipsec.driver:missing",
    )
    for router in ROUTERS
)
