"""Declaration of IPsec tunnels of VPP as NFs."""

from dataclasses import replace

from resources.libraries.python.drivers.functions.vpp.registration import DRIVERS as ROUTERS

DRIVERS = tuple(
    replace(
        router,
        name="vpp_ipsec",
        label="VPP IPsec",
        word="vppipsec",
        words=(*router.words, "IPsec"),
        simple=False,
        on_request=True,
        factory="resources.libraries.python.drivers.functions.vpp_ipsec.driver:VppTunnels",
        missing="resources.libraries.python.drivers.functions.vpp_ipsec.driver:missing",
    )
    for router in ROUTERS
)
