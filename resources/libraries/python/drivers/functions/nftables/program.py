"""The program `nft`, run in the network namespace that the calling thread is in, and limits of the network by it."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator

from resources.libraries.python.drivers.host.programs.program_output import completed, path_of
from resources.libraries.python.errors import CommandFailed, Unsupported
from resources.libraries.python.model.findings import PreflightProblem
from resources.libraries.python.model.plan import Link, NfPlan, TapPlan

_PROGRAM = "nft"
_PACKAGE = "nftables"
_WITHIN_S = 30.0
_BURST_S = 0.01
"""Data threads that share a CPU wait for each other for milliseconds; what a port may receive meanwhile is not lost."""
_MIN_BURST = 16
"""Packets in the bucket: a slow port still passes a handful at once."""
_LIMITS = "csit_limits"


def load(ruleset: str) -> None:
    """Put a ruleset into force, all of it or nothing.

    Raises:
        Unsupported: There is no nft.
        CommandFailed: The kernel or nft refused it.
        NotReady: It does not end.
    """
    _run("-f", "-", script=ruleset)


def counters() -> dict[str, int]:
    """Packets by the name of the counter, of this namespace.

    Raises:
        Unsupported: There is no nft.
        CommandFailed: The table is gone, or cannot be read.
        NotReady: It does not end.
    """
    return read_counters(_run("-j", "list", "counters"))


def read_counters(listed: str) -> dict[str, int]:
    """Packets by the name of the counter, from what the program lists as JSON.

    Raises:
        ValueError: It is something else.
    """
    try:
        rows = json.loads(listed)["nftables"]
        return {row["counter"]["name"]: int(row["counter"]["packets"]) for row in rows if "counter" in row}
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"no list of counters: {error!r}") from error


def version() -> str:
    """As it calls itself: `nftables v1.0.6`.

    Raises:
        Unsupported: There is no nft.
    """
    return _run("--version").partition("(")[0].strip()


def missing(*_: object) -> Iterator[PreflightProblem]:
    """Requirements that this machine lacks."""
    if path_of(_PROGRAM) is None:
        yield PreflightProblem(
            f"{_PROGRAM} missing for NFs of kind linux_firewall, linux_stateful_firewall, linux_nat and linux_gateway",
            f"install it: apt-get install {_PACKAGE}",
        )


def network_limits(links: Iterable[Link], functions: Iterable[NfPlan | TapPlan]) -> dict[str, str]:
    """Rulesets of nftables by the owner of the ports that send to limited NFs; an NF without a limit needs none.

    A limit is a token bucket where the peers of an NF send. It drops at once what is too much, and does not let packets
    wait as the shapers of traffic control do: those set a timer for nearly every packet in overload, which on a virtual
    machine cost more than what was limited. It counts packets, as a bucket of nftables that counts bytes always has
    room for a whole second of them.

    `functions`: NFs of any kind, with and without limits.
    """
    limits = {each.name: each.limits.network_pps for each in functions if each.limits.network_pps is not None}
    chains: dict[str, list[str]] = defaultdict(list)
    for link in links:
        for receiver, sender in ((link.a, link.b), (link.b, link.a)):
            if receiver.owner in limits:
                chains[sender.owner].append(_bucket(sender.interface, limits[receiver.owner]))
    return {owner: "\n".join([f"table netdev {_LIMITS} {{", *row, "}"]) + "\n" for owner, row in chains.items()}


def limit(ruleset: str) -> None:
    """Put buckets into force in the network namespace that the calling thread is in.

    Raises:
        Unsupported: There is no nft, or this kernel cannot filter what a port sends.
    """
    try:
        load(ruleset)
    except Unsupported as error:
        raise Unsupported("nft missing for limits of the network; install it: apt-get install nftables") from error
    except CommandFailed as error:
        raise Unsupported(f"this kernel cannot limit what a port sends (nftables, hook egress): {error}") from error


def _bucket(interface: str, rate_pps: float) -> str:
    rate = max(1, round(rate_pps))
    burst = max(_MIN_BURST, round(rate * _BURST_S))
    return (
        f'  chain {interface} {{ type filter hook egress device "{interface}" priority 0; policy accept; '
        f"limit rate over {rate}/second burst {burst} packets drop; }}"
    )


def _run(*words: str, script: str = "") -> str:
    path = path_of(_PROGRAM)
    if path is None:
        raise Unsupported("; ".join(map(str, missing())))
    argv = (path, *words)
    done = completed(argv, _WITHIN_S, stdin=script, check=False)
    if done.returncode:
        # Of a ruleset nft also shows the lines; the first one says what is wrong.
        raise CommandFailed(argv, done.returncode, (done.stderr.strip().splitlines() or ["nothing on stderr"])[0])
    return done.stdout
