"""Declarations of Linux routers with rules of nftables as NFs."""

from functools import partial
from typing import Annotated

from pydantic import Field

from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.driver import (
    VETH,
    Form,
    FunctionDriver,
    GuestKind,
    KernelFeature,
    RequiredProgram,
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

DRIVERS = (
    _router(name="linux_firewall", ipv6=True, options={"firewall": Firewall}, word="lnxfw", guest=_guest("firewall")),
    _router(
        name="linux_stateful_firewall",
        options={"firewall": Firewall},
        word="lnxsfw",
        ipv6=True,
        tracks_connections=True,
    ),
    _router(name="linux_nat", word="lnxnat", translates=True, tracks_connections=True, guest=_guest("nat")),
    _router(name="linux_gateway", ipv6=True, options={"gateway": Gateway}, word="lnxgw", guest=_guest("gateway")),
)
