"""Network functions as Linux routers with rules of nftables, in a network namespace each or in guests."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.functions.namespace_functions import MERGED, NamespaceFunctions, passed_by
from resources.libraries.python.drivers.functions.nftables import program
from resources.libraries.python.drivers.functions.nftables.rulesets import TABLE, family, ruleset_of
from resources.libraries.python.drivers.functions.vm.applications import Application
from resources.libraries.python.drivers.host.links import conntrack
from resources.libraries.python.drivers.host.links.routing import configure_routers, router_steps
from resources.libraries.python.drivers.host.programs.disturbances import Steps
from resources.libraries.python.errors import CommandFailed, CsitError
from resources.libraries.python.model.measurements.counters import ConnectionTable, Deletion
from resources.libraries.python.model.measurements.disturbance import PartEvent
from resources.libraries.python.model.plan import NfPlan
from resources.libraries.python.model.testbed.nodes import DutNode

_AGAIN = 3
"""Deletions of entries that packets on their way have made since the last one."""


class NftablesRouters(NamespaceFunctions[NfPlan]):
    """NFs that route IPv4 in the kernel by rules for it."""

    def __init__(self, node: DutNode, context: DriverContext, functions: Sequence[NfPlan]) -> None:
        super().__init__(node, context, functions)
        self._ruleset = ruleset_of(functions[0].kind, node)
        self._rows = {owner: [each for each in functions if each.name == owner] for owner in self._owners}
        self._does = self._ruleset.about

    def start(self) -> None:
        """Give every NF its rules, then its addresses, neighbours and routes: no packet ever passes without rules.

        Raises:
            Unsupported: There is no nft.
            CsitError: The kernel refused something.
        """
        self._version = program.version()
        for owner, row in self._rows.items():
            try:
                self._fabric.run_inside(owner, partial(program.load, self._ruleset.text(row)))
            except CommandFailed as error:
                raise CsitError(f"the rules of {owner} were refused: {error.stderr}") from error
            configure_routers(row, self._fabric)

    def steps(self, target: str, event: PartEvent) -> Steps | None:
        row = self._rows.get(target)
        return router_steps(event, row, self._fabric, partial(self._reload, target, row)) if row else None

    def _reload(self, owner: str, row: Sequence[NfPlan]) -> None:
        rules = f"delete table {family(row)} {TABLE}\n{self._ruleset.text(row)}"
        self._fabric.run_inside(owner, partial(program.load, rules))

    def _looked_up(self, owner: str) -> int:
        """Packets that went through the rules of an NF since it was made."""
        found = self._fabric.run_inside(owner, program.counters)
        if self._ruleset.counter not in found:
            raise CsitError(f"there is no counter {self._ruleset.counter}")
        return found[self._ruleset.counter]

    def connection_tables(self) -> Mapping[str, ConnectionTable]:
        return self._fabric.run_inside_each(self._tracking, conntrack.table)

    def hold_connections(self, timeout_s: int) -> Mapping[str, ConnectionTable]:
        return self._fabric.run_inside_each(self._tracking, partial(conntrack.hold, timeout_s))

    def delete_connections(self) -> Mapping[str, Deletion]:
        """Delete the entries of all namespaces, and wait until they are freed.

        One table after another, by one thread: the kernel's lock of connections is that of all namespaces, and
        threads that wait for it use a CPU each without deleting anything.

        A packet that is still on its way makes an entry after the deletion: then all are deleted again, and the times
        are those of the first deletion.
        """
        deleted = self._fabric.run_inside_each(self._tracking, conntrack.delete)
        left = self._fabric.run_inside_each(self._tracking, conntrack.settled)
        for _ in range(_AGAIN):
            if not any(left.values()):
                break
            self._fabric.run_inside_each(self._tracking, conntrack.delete)
            left = self._fabric.run_inside_each(self._tracking, conntrack.settled)
        return {owner: row.model_copy(update={"left": left[owner]}) for owner, row in deleted.items()}

    @property
    def _tracking(self) -> Sequence[str]:
        return [owner for owner, row in self._rows.items() if row[0].kind.driver.tracks_connections]

    def problems(self) -> tuple[str, ...]:
        """Ports that have lost their data thread or their carrier, NFs that have lost their rules."""
        return super().problems() or tuple(self._passed_by())

    def _passed_by(self) -> Iterator[str]:
        for owner in self._owners:
            try:
                looked_up = self._looked_up(owner)
                received = self._received(owner)
            except CsitError as error:
                yield f"the rules of {owner} cannot be read: {error}"
                continue
            if passed_by(looked_up, received, merged=MERGED):
                yield f"{owner} received {received:,} packets, and only {looked_up:,} went through its rules"


def application(function: NfPlan, node: DutNode, _: int) -> Application:
    """Return the rules of an NF."""
    ruleset = ruleset_of(function.kind.in_guest or function.kind, node)
    return Application(ruleset.about, program.version, rules=ruleset.text([function]), counter=ruleset.counter)
