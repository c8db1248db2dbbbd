"""What Linux guests can run besides routing, as in network namespaces: the same rules, and the same programs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from resources.libraries.python.drivers.function.monitor.driver import version_of
from resources.libraries.python.drivers.function.monitor.programs import programs
from resources.libraries.python.drivers.function.nftables import program as nft
from resources.libraries.python.drivers.function.nftables import rulesets
from resources.libraries.python.drivers.function.nftables.rulesets import Ruleset
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.kinds import NfKind
from resources.libraries.python.model.nodes import DutNode
from resources.libraries.python.model.plan import NfPlan

NFT, PERL = "nft", "perl"
"""Programs: perl reads the counters of a packet socket, for which the guest's busybox has no means."""


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


def application(function: NfPlan, node: DutNode) -> Application | None:
    """What the guest of an NF runs; None for one that only routes.

    Args:
        function: The NF.
        node: Has the settings of applications.

    Raises:
        Unsupported: Nothing of that kind can run in a guest.
    """
    kind = function.kind.in_guest
    if kind is None:
        return None
    if kind in _RULES:
        ruleset = _RULES[kind](node)
        return Application(ruleset.about, (NFT,), nft.version, rules=ruleset.text([function]), counter=ruleset.counter)
    program = programs(node.ngrep.patterns, node.suricata.rules)[kind]
    if program.control is not None:
        raise Unsupported(f"{program.name} cannot run in a guest: it counts by a socket of its own")
    argv = program.argv(function.left.name, Path("/tmp"))  # noqa: S108 - in the guest
    version = partial(version_of, program.name, program.tells)
    return Application(program.does, (program.name, PERL), version, argv=tuple(argv))


_RULES: dict[NfKind, Callable[[DutNode], Ruleset]] = {
    NfKind.LINUX_FIREWALL: lambda node: rulesets.firewall(node.firewall.rules),
    NfKind.LINUX_NAT: lambda _: rulesets.nat(),
    NfKind.LINUX_GATEWAY: lambda node: rulesets.gateway(node.gateway.addresses),
}


def carried_names(applications: Sequence[Application]) -> tuple[str, ...]:
    """Names of the programs that guests of a cell need, each once."""
    return tuple(sorted({name for each in applications for name in each.carries}))
