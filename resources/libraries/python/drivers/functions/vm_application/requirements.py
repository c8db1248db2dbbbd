"""What this machine lacks for applications in virtual machines."""

from collections.abc import Iterator

from resources.libraries.python.drivers.functions.monitor.programs import programs
from resources.libraries.python.drivers.functions.nginx import program as nginx
from resources.libraries.python.drivers.functions.vm.requirements import missing as vm_missing
from resources.libraries.python.drivers.functions.vm_application.applications import IP, NFT, PERL, needed
from resources.libraries.python.drivers.host.ownership.preflight import Problem
from resources.libraries.python.drivers.host.programs.installed import path_of
from resources.libraries.python.model.kinds import LINUX_GUESTS, NfKind
from resources.libraries.python.model.nodes import DutNode

_PACKAGES = {
    NFT: "nftables",
    PERL: "perl",
    IP: "iproute2",
    nginx.NAME: "nginx libnginx-mod-stream",
    **{program.name: program.package for program in programs(1, 1).values()},
}
"""Of Debian, by the program."""


def missing() -> Iterator[Problem]:
    """What is missing, with the kinds of virtual machines that need it."""
    for name, package in _PACKAGES.items():
        if path_of(name) is None or (name == nginx.NAME and any(nginx.missing())):
            kinds = (kind for kind in LINUX_GUESTS if kind.in_guest is not None and name in needed(kind.in_guest))
            problem = f"{name} missing for virtual machines of kind {', '.join(kinds)}"
            yield Problem(problem, f"install it: apt-get install {package}")


def missing_on(_: DutNode, __: NfKind) -> Iterator[Problem]:
    """What this machine lacks for Linux guests of a node."""
    yield from vm_missing()
    yield from missing()
