"""Network functions that are VPPs: each routes IPv4 between its two ports."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.functions.mixed_kinds import OneKind
from resources.libraries.python.drivers.host.links.link_devices import foreign_macs
from resources.libraries.python.drivers.host.programs.disturbances import Steps
from resources.libraries.python.drivers.vpp import Vpp, acl
from resources.libraries.python.drivers.vpp.cli import wait_for_reports
from resources.libraries.python.drivers.vpp.configuration import HugePageChoice, routing
from resources.libraries.python.drivers.vpp.installation import Site, remove_folder
from resources.libraries.python.drivers.vpp.installation import missing as program_missing
from resources.libraries.python.drivers.vpp.interfaces import InterfaceKind, interfaces_of
from resources.libraries.python.drivers.vpp.member import VppMember, plugins_for
from resources.libraries.python.model.findings import PreflightProblem
from resources.libraries.python.model.measurements.counters import InterfaceCounters
from resources.libraries.python.model.measurements.disturbance import PartEvent
from resources.libraries.python.model.measurements.node_costs import NodeCost
from resources.libraries.python.model.plan import NfPlan
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.testbed.nodes import DutNode

_READY_MORE_S = 3.0
"""For each further NF: they start together, on as many cores as there are."""
_log = logging.getLogger(__name__)


class VppRouters(OneKind):
    """A VPP per NF that routes IP."""

    def __init__(self, node: DutNode, context: DriverContext, functions: Sequence[NfPlan]) -> None:
        self._functions = {function.name: function for function in functions}
        self._site = Site(context.plan, context.fabric, context.lock, node.settings(Vpp), context.largest_frame_bytes)
        self._members: dict[str, VppMember] = {}
        self._groups = context.groups
        self._pages: HugePageChoice | None = None

    def start(self) -> None:
        """Start all of them together, configure them, wait until their shared memory is connected.

        Raises:
            CsitError: One ended, or refused something; the text has its last words.
            NotReady: One does not answer, or shared memory is not connected.
        """
        self._pages = self._site.pages(len(self._functions))
        for name in self._functions:
            self._begin(name)
        self._configure(list(self._functions))
        _log.info("%d VPPs route", len(self._members))

    def steps(self, target: str, event: PartEvent) -> Steps | None:
        if target not in self._functions:
            return None
        return self._members[target].steps(event, target, partial(self._restart_with_threads, target))

    def _restart_with_threads(self, name: str) -> None:
        self.restart(name)
        self._members[name].place_queues()
        self._groups.take_in({name: (self._members[name].instance.pid,)})

    def restart(self, name: str) -> None:
        """Start an NF again that has ended, with the same configuration: its neighbours take it back by themselves.

        Addresses of its interfaces are the plan's, so what its neighbours know of it stays right.

        Raises:
            CsitError: It cannot be started, or refused something.
        """
        self._end([self._members[name]])
        self._begin(name)
        self._configure([name])

    def _begin(self, name: str) -> None:
        interfaces = interfaces_of(self._site.plan, name, self._site.folder)
        member = self._members[name] = VppMember(self._site, name, f"VPP of {name}", interfaces)
        self._start(member, plugins_for(interfaces, self._site.settings))

    def _start(self, member: VppMember, plugins: tuple[str, ...], *, logs_commands: bool = True) -> None:
        """Start an NF's VPP.

        `logs_commands`: whether its commands are written to a file.
        """
        assert self._pages is not None  # noqa: S101 - chosen in start
        member.start(self._pages, plugins, self._groups.container(member.owner), logs_commands=logs_commands)

    def _forward(self, member: VppMember) -> None:
        """Let an NF forward between its two ports, which are made and down yet."""
        member.instance.do(routing(self._functions[member.owner]))

    def _configure(self, names: Sequence[str]) -> None:
        """First all ends that listen, then all that connect: one that is early would try again after 3 s."""
        members = [self._members[name] for name in names]
        more_s = _READY_MORE_S * len(members)
        for member in members:
            member.instance.wait_ready(more_s)
            member.make_interfaces()
        for member in members:
            self._forward(member)
            self._hide_from_kernel(member)
        for member in members:
            member.wait_connected()
            member.place_queues()
        wait_for_reports((self._functions[member.owner], member.instance.ask) for member in members)

    def _hide_from_kernel(self, member: VppMember) -> None:
        """Of ports of the kernel; VPP has the planned MACs."""
        own = ((each.name, each.mac) for each in member.interfaces if each.kind is InterfaceKind.HOST)
        self._site.fabric.change(member.owner, foreign_macs(own, self._site.fabric.index))

    def affinity(self) -> Mapping[str, frozenset[int]]:
        """CPUs on which each port is received from; empty where the thread is gone."""
        return {port: cpus for member in self._members.values() for port, cpus in member.affinity().items()}

    def counters(self) -> Mapping[str, InterfaceCounters]:
        """Counters by interface; those of an NF that has ended are left out."""
        return {
            port: count
            for member in self._members.values()
            if not member.instance.problem()
            for port, count in member.counters().items()
        }

    def begin_accounts(self) -> tuple[str, ...]:
        for member in self._members.values():
            member.instance.do(["clear runtime"])
        return tuple(self._members)

    def accounts(self) -> tuple[NodeCost, ...]:
        return tuple(row for member in self._members.values() for row in member.accounts())

    def facts(self) -> Mapping[str, str]:
        """Version, and of each what it did between the last two readings of the counters."""
        members = list(self._members.values())
        if not members:
            return {}
        first = members[0].facts()
        common = {name: first[name] for name in ("data threads", "waiting", "pages") if name in first}
        found: dict[str, str] = {"vpp": f"VPP {members[0].instance.version}"} | common
        for member in members:
            rows = first if member is members[0] else member.facts()
            for name in ("threads", "access list", "work", "errors"):
                if name in rows:
                    found[f"{member.owner} {name}"] = rows[name]
        return found

    def problems(self) -> tuple[str, ...]:
        return tuple(problem for member in self._members.values() for problem in member.problems())

    def stop(self) -> None:
        self.call_off()
        members, self._members = self._members, {}
        self._end(list(members.values()))

    def _end(self, members: Sequence[VppMember]) -> None:
        for member in members:
            member.instance.request_end()
        for member in members:
            member.instance.wait_end()
            remove_folder(self._site.folder, member.owner)


def missing(node: DutNode, _: NfKind) -> Iterator[PreflightProblem]:
    """Requirements that this machine lacks: VPP with its plugins."""
    settings = node.settings(Vpp)
    yield from program_missing(Path(settings.prefix), ("memif", "af_packet", *acl(settings)))
