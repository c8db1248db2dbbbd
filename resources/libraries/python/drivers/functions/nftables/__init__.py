"""Network functions of nftables: Linux routers that filter or translate what they forward."""

from functools import partial
from typing import Annotated

from pydantic import Field

from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.driver import (
    IPV4,
    VETH,
    Form,
    FunctionDriver,
    GuestKind,
    KernelFeature,
    RequiredProgram,
    SimulatedNf,
    Traffic,
)
from resources.libraries.python.model.measurements.disturbance import PartEvent


class Firewall(Frozen):
    """Parameters of NFs of kind linux_firewall."""

    rules: Annotated[int, Field(ge=1, le=10_000)] = 100
    """That every packet is looked up in, of either direction: none matches but the last one, which lets it pass."""


class Gateway(Frozen):
    """Parameters of NFs of kind linux_gateway."""

    addresses: Annotated[int, Field(ge=1, le=65_536)] = 500
    """Addresses of the set that source and destination of every packet are looked up in; none of them matches."""


PROGRAM = RequiredProgram("nft", "nftables", label="nftables", version=r"nftables v(\S+)")
_PACKAGE = "resources.libraries.python.drivers.functions.nftables"
_router = partial(
    FunctionDriver,
    label="nftables",
    form=Form.NAMESPACE,
    factory=f"{_PACKAGE}.driver:NftablesRouters",
    missing=f"{_PACKAGE}.program:missing",
    programs=(PROGRAM,),
    words=("nft", "nftables"),
    events=frozenset(PartEvent),
    kernel=(VETH, KernelFeature("nftables", "NF_TABLES", "nf_tables")),
    on_request=True,
    shareable=True,
)
_guest = partial(GuestKind, application=f"{_PACKAGE}.driver:application", programs=(PROGRAM,))
_BOTH = IPV4 | {Traffic.IPV6}
_SIMULATED_NAT = SimulatedNf(half_core_pps=0.45e6, sensitivity=0.45, half_pressure=0.30, pressure=0.30)

DRIVERS = (
    _router(
        name="linux_firewall",
        takes=_BOTH,
        options={"firewall": Firewall},
        word="lnxfw",
        guest=_guest("firewall"),
        simulated=SimulatedNf(half_core_pps=0.3e6, sensitivity=0.40, half_pressure=0.15, pressure=0.10),
    ),
    _router(
        name="linux_stateful_firewall",
        options={"firewall": Firewall},
        word="lnxsfw",
        takes=_BOTH,
        tracks_connections=True,
        simulated=_SIMULATED_NAT,
    ),
    _router(
        name="linux_nat",
        word="lnxnat",
        translates=True,
        tracks_connections=True,
        guest=_guest("nat"),
        simulated=_SIMULATED_NAT,
    ),
    _router(
        name="linux_gateway",
        takes=_BOTH,
        options={"gateway": Gateway},
        word="lnxgw",
        guest=_guest("gateway"),
        # Type I of Zeng et al.
        simulated=SimulatedNf(half_core_pps=0.5e6, sensitivity=0.15, half_pressure=0.02, pressure=0.03),
    ),
)
