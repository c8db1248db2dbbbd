"""What Linux guests can run besides routing, as in network namespaces: the same rules, and the same programs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from socket import IPPROTO_UDP

from resources.libraries.python.drivers.functions.monitor.driver import version_of
from resources.libraries.python.drivers.functions.monitor.programs import programs
from resources.libraries.python.drivers.functions.nftables import program as nft
from resources.libraries.python.drivers.functions.nftables import rulesets
from resources.libraries.python.drivers.functions.nftables.rulesets import Ruleset
from resources.libraries.python.drivers.functions.nginx import program as nginx
from resources.libraries.python.drivers.functions.nginx.configuration import configuration, ports
from resources.libraries.python.drivers.functions.vm.guest_software import cards
from resources.libraries.python.drivers.functions.vm_application.counters import Counts, Datagrams, PacketSockets
from resources.libraries.python.drivers.host.programs.installed import path_of
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.kinds import NfKind
from resources.libraries.python.model.nodes import DutNode
from resources.libraries.python.model.plan import NfPlan, TapPlan
from resources.libraries.python.model.traffic import traffic_profile

NFT, PERL, IP = "nft", "perl", "ip"
"""Programs for which the guest's busybox has no means: perl reads the counters of packet sockets and asks control
sockets, ip makes rules of routing by UDP ports."""
PLACE = Path("/tmp")  # noqa: S108 - in the guest
"""The folder of the program and its files in the guest."""
_SETTLE_TIMES = 4
"""A guest in emulation takes its time: so many times as long as a namespace for what cannot be waited for otherwise."""
_SURICATA_NEEDS = ("ssse3", "sse4.1", "sse4.2", "popcnt")
"""Debian's Suricata ends with an illegal instruction without them (measured with SSSE3 alone, 7.0.10)."""
_TABLE = 100
"""Of routing, for datagrams that nginx is to take in."""


@dataclass(frozen=True, slots=True)
class Application:
    """What one guest runs: rules of its kernel, or a program beside it."""

    about: str
    """For a person."""
    carries: tuple[str, ...]
    """Names of the programs that its guest needs."""
    version: Callable[[], str]
    """Of the program that counts, with its name."""
    rules: str = ""
    """Of nftables, in force before its ports are up."""
    counter: str = ""
    """Of those rules, that counts every packet."""
    argv: tuple[str, ...] = ()
    """Of the program, which is up before the guest is ready."""
    prints: bool = False
    """Whether it prints what it makes on standard output, beside what it has to say."""
    files: Mapping[str, str] = field(default_factory=dict)
    """What the program reads from `PLACE`: texts by name."""
    more: tuple[Path, ...] = ()
    """Further files of this machine that the program loads."""
    up: str = ""
    """A shell's test whether the program is up, given its process id."""
    then: str = ""
    """Shell commands for the moment in which it is."""
    needs: tuple[str, ...] = ()
    """Features of a CPU in emulation, in QEMU's words."""
    counts: Callable[[], Counts] = PacketSockets
    """Makes what reads the program's counters."""


def application(function: NfPlan | TapPlan, node: DutNode, vcpus: int = 1) -> Application | None:
    """What the guest of an NF runs; None for one that only routes.

    Args:
        function: The NF.
        node: Has the settings of applications.
        vcpus: That its guest has.

    Raises:
        Unsupported: A passive NF is of a kind that packets have to go through.
    """
    kind = function.kind.in_guest
    if kind is None:
        return None
    if kind.is_monitor:
        return _monitor(function, kind, node)
    if isinstance(function, TapPlan):
        raise Unsupported(f"{function.name}: an NF of kind {function.kind} cannot be passive")
    if kind in _RULES:
        ruleset = _RULES[kind](node)
        text = ruleset.text([function])
        return Application(ruleset.about, needed(kind), nft.version, rules=text, counter=ruleset.counter)
    return _nginx(function, kind, vcpus)


def needed(kind: NfKind) -> tuple[str, ...]:
    """Names of the programs that a guest has of this machine.

    Args:
        kind: What runs in it, by the kind that does the same in a network namespace.
    """
    if kind in _RULES:
        return (NFT,)
    return (programs(1, 1)[kind].name, PERL) if kind.is_monitor else (nginx.NAME, IP)


def _monitor(function: NfPlan | TapPlan, kind: NfKind, node: DutNode) -> Application:
    program, watched = programs(node.ngrep.patterns, node.suricata.rules)[kind], cards(function)[0][0]
    # A line of titles, and one for the program's socket.
    up = '[ "$(wc -l </proc/net/packet)" -gt 1 ]'
    return Application(
        program.does,
        needed(kind),
        partial(version_of, program.name, program.tells),
        argv=tuple(program.argv(watched, PLACE)),
        prints=program.control is None,
        files=program.files(watched, PLACE),
        up=up if program.control is None else f"{up} && [ -S {PLACE / program.control} ]",
        then=f"sleep {_SETTLE_TIMES * program.settles_s:g}" if program.settles_s else "",
        needs=_SURICATA_NEEDS if kind is NfKind.SURICATA else (),
        counts=PacketSockets if program.control is None else partial(PacketSockets, watched),
    )


def _nginx(function: NfPlan, kind: NfKind, vcpus: int) -> Application:
    traffic, module, file = traffic_profile(), nginx.module(), "nginx.conf"
    listening = [f"grep -q ':{port:04X} ' /proc/net/udp" for port in ports(traffic)]
    workers = f'[ "$(grep -l "^PPid:[[:space:]]*$1\\$" /proc/[0-9]*/status | wc -l)" -ge {vcpus} ]'
    ip = path_of(IP) or IP
    rules = [
        f"{ip} rule add iif {side.name} ipproto {IPPROTO_UDP} dport {port} lookup {_TABLE}"
        for side in (function.left, function.right)
        for port in ports(traffic)
    ]
    return Application(
        nginx.ABOUT[kind],
        needed(kind),
        nginx.version,
        argv=(nginx.NAME, "-p", str(PLACE), "-c", str(PLACE / file), "-e", "stderr"),
        files={file: configuration(function, traffic, workers=vcpus, module=module)},
        more=() if module is None else (Path(module),),
        up=" && ".join([*listening, workers]),
        then="\n".join([f"{ip} route add local default dev lo table {_TABLE}", *rules]),
        counts=Datagrams,
    )


_RULES: dict[NfKind, Callable[[DutNode], Ruleset]] = {
    NfKind.LINUX_FIREWALL: lambda node: rulesets.firewall(node.firewall.rules),
    NfKind.LINUX_NAT: lambda _: rulesets.nat(),
    NfKind.LINUX_GATEWAY: lambda node: rulesets.gateway(node.gateway.addresses),
}
