"""A limit of what the ports of single NFs receive: a token bucket where their peers send.

It drops at once what is too much, and does not let packets wait as the shapers of traffic control do: those set a timer
for nearly every packet in overload, which on a virtual machine cost more than what was limited. It counts packets, as a
bucket of nftables that counts bytes always has room for a whole second of them.
"""

from collections import defaultdict
from collections.abc import Iterable

from resources.libraries.python.drivers.functions.nftables import program
from resources.libraries.python.errors import CommandFailed, Unsupported
from resources.libraries.python.model.plan import Link, NfPlan, TapPlan

_BURST_S = 0.01
"""Data threads that share a CPU wait for each other for milliseconds; what a port may receive meanwhile is not lost."""
_MIN = 16
"""Packets in the bucket: a slow port still passes a handful at once."""
_TABLE = "csit_limits"


def network_limits(links: Iterable[Link], functions: Iterable[NfPlan | TapPlan]) -> dict[str, str]:
    """Rulesets of nftables by the owner of the ports that send to limited NFs; an NF without a limit needs none.

    `functions`: NFs of any kind, with and without limits.
    """
    limits = {each.name: each.limits.network_pps for each in functions if each.limits.network_pps is not None}
    chains: dict[str, list[str]] = defaultdict(list)
    for link in links:
        for receiver, sender in ((link.a, link.b), (link.b, link.a)):
            if receiver.owner in limits:
                chains[sender.owner].append(_bucket(sender.interface, limits[receiver.owner]))
    return {owner: "\n".join([f"table netdev {_TABLE} {{", *row, "}"]) + "\n" for owner, row in chains.items()}


def limit(ruleset: str) -> None:
    """Put buckets into force in the network namespace that the calling thread is in.

    Raises:
        Unsupported: There is no nft, or this kernel cannot filter what a port sends.
    """
    try:
        program.load(ruleset)
    except Unsupported as error:
        raise Unsupported("nft missing for limits of the network; install it: apt-get install nftables") from error
    except CommandFailed as error:
        raise Unsupported(f"this kernel cannot limit what a port sends (nftables, hook egress): {error}") from error


def _bucket(interface: str, rate_pps: float) -> str:
    rate = max(1, round(rate_pps))
    burst = max(_MIN, round(rate * _BURST_S))
    return (
        f'  chain {interface} {{ type filter hook egress device "{interface}" priority 0; policy accept; '
        f"limit rate over {rate}/second burst {burst} packets drop; }}"
    )
