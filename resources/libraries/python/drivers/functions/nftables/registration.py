"""Declarations of Linux routers with rules of nftables as NFs."""

from resources.libraries.python.model.driver import FunctionDriver, RequiredProgram
from resources.libraries.python.model.kinds import NfKind

_WORDS = {NfKind.LINUX_FIREWALL: "lnxfw", NfKind.LINUX_NAT: "lnxnat", NfKind.LINUX_GATEWAY: "lnxgw"}

DRIVERS = tuple(
    FunctionDriver(
        name=kind.value,
        label="nftables",
        kind=kind,
        word=word,
        factory="resources.libraries.python.drivers.functions.nftables.driver:make",
        missing="resources.libraries.python.drivers.functions.nftables.program:missing_on",
        programs=(RequiredProgram("nft", "nftables", label="nftables", version=r"nftables v(\S+)"),),
        words=("nft", "nftables"),
        on_request=True,
    )
    for kind, word in _WORDS.items()
)
