"""Rules of the kernel for packets that an NF forwards, in the language of `nft`: pure, from the plan.

Each ruleset counts its packets, which shows that packets do not bypass it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

from resources.libraries.python.drivers.functions.nftables import Firewall, Gateway
from resources.libraries.python.model.plan import NfPlan
from resources.libraries.python.model.testbed.nodes import DutNode

TABLE = "csit"
_NO_SENDER = int(IPv4Address("198.18.0.0"))
"""198.18.0.0/15 is for measurements (RFC 2544), and no flow of a plan uses it."""
_NO_SENDER_IPV6 = int(IPv6Address("2001:2::"))
"""2001:2::/48 likewise (RFC 5180)."""


@dataclass(frozen=True, slots=True)
class Ruleset:
    """One kind of NF."""

    about: str
    """What it does, with its numbers, for messages."""
    counter: str
    """Counts every packet that is forwarded, and has been looked up."""
    text: Callable[[Sequence[NfPlan]], str]
    """The commands for one NF. Shared by instances, it is one row of the plan for each."""


def firewall(rules: int, *, stateful: bool = False) -> Ruleset:
    """Look every packet up in all rules, one after the other; the last one accepts it, and nothing else does.

    `rules`: How many, at least 1.
    `stateful`: Whether only the first packet of a connection is looked up: the others are accepted by its state.
    """
    accept = "counter name accepted accept"

    def text(row: Sequence[NfPlan]) -> str:
        # Single rules on purpose: a set would be looked up at once, whatever its size.
        ip = family(row)
        lines = (f"{ip} saddr {sender} counter drop" for sender in _no_senders(ip, rules - 1))
        return _table(
            ip,
            "counter accepted { }",
            _chain(
                "forward", "filter hook forward priority filter; policy drop;",
                *([f"ct state established {accept}"] if stateful else []), *lines,
                f"ct state new {accept}" if stateful else accept,
            ),
        )  # fmt: skip

    of = "the first packet of every connection" if stateful else "every packet of either direction"
    return Ruleset(f"{rules} rules for {of}", "accepted", text)


def gateway(addresses: int) -> Ruleset:
    """Look source and destination of every packet up in one set of addresses, and drop what is in it.

    Sets of nftables are what `ipset` is to iptables, whose successor nftables is: one lookup in a hash table, however
    many addresses there are.

    `addresses`: How many, at least 1.
    """

    def text(row: Sequence[NfPlan]) -> str:
        ip = family(row)
        elements = ", ".join(_no_senders(ip, addresses))
        address = "ipv6_addr" if ip == "ip6" else "ipv4_addr"
        return _table(
            ip,
            "counter accepted { }",
            "counter refused { }",
            f"set refused_addresses {{ type {address}; elements = {{ {elements} }}; }}",
            _chain(
                "forward", "filter hook forward priority filter; policy drop;",
                *(f"{ip} {end} @refused_addresses counter name refused drop" for end in ("saddr", "daddr")),
                "counter name accepted accept",
            ),
        )  # fmt: skip

    return Ruleset(f"source and destination looked up in a set of {addresses} addresses", "accepted", text)


def nat() -> Ruleset:
    """Translate source addresses on the way forward, one to one; track packets of both directions.

    One to one, because packets of a flow may be of a protocol without ports, of which many senders cannot have one
    address. Without ports packets of both directions are between the same addresses, and the connection tracker would
    take those of one for answers to the other, which it does not translate. So such packets from the right have a zone
    of their own, but for answers to translated ones. With ports, the connection tracker identifies answers.
    """

    def text(row: Sequence[NfPlan]) -> str:
        left, right = (", ".join(f'"{name}"' for name in names) for names in zip(*map(_sides, row), strict=True))
        networks = ", ".join(str(each.translates_to) for each in row)
        no_ports = "meta l4proto != { tcp, udp, icmp }"
        tracked = "ct state new,established counter name tracked"
        return _table(
            "ip",
            "counter tracked { }",
            "counter translated { }",
            _chain(
                "zones", "filter hook prerouting priority raw; policy accept;",
                f"iifname {{ {right} }} {no_ports} ip daddr != {{ {networks} }} ct zone set 1",
            ),
            _chain(
                "translate", "nat hook postrouting priority srcnat; policy accept;",
                *(f'oifname "{each.right.name}" snat prefix to {each.translates_to}' for each in row),
            ),
            _chain(
                "proof", "filter hook postrouting priority 300; policy accept;",
                f"oifname {{ {left}, {right} }} {tracked}",
                f"oifname {{ {right} }} ct status snat counter name translated",
            ),
        )  # fmt: skip

    return Ruleset("source addresses translated one to one on the way forward", "tracked", text)


def ruleset_of(kind: str, node: DutNode) -> Ruleset:
    """Return the ruleset of a kind of NF on a node."""
    made: dict[str, Callable[[], Ruleset]] = {
        "linux_firewall": lambda: firewall(node.settings(Firewall).rules),
        "linux_stateful_firewall": lambda: firewall(node.settings(Firewall).rules, stateful=True),
        "linux_nat": nat,
        "linux_gateway": lambda: gateway(node.settings(Gateway).addresses),
    }
    return made[kind]()


def _sides(function: NfPlan) -> tuple[str, str]:
    return function.left.name, function.right.name


def family(row: Sequence[NfPlan]) -> str:
    """The family of nftables for the addresses of an NF: `ip` or `ip6`."""
    return "ip6" if any(":" in each.left.address for each in row) else "ip"


def _no_senders(ip: str, count: int) -> Iterator[str]:
    """Addresses that no packet has."""
    for number in range(1, count + 1):
        yield str(IPv6Address(_NO_SENDER_IPV6 + number) if ip == "ip6" else IPv4Address(_NO_SENDER + number))


def _table(ip: str, *parts: str) -> str:
    return "\n".join((f"table {ip} {TABLE} {{", *parts, "}\n"))


def _chain(name: str, hook: str, *rules: str) -> str:
    return "\n".join((f"chain {name} {{", f"type {hook}", *rules, "}"))
