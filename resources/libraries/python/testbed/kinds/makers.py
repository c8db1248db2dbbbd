"""Make the drivers of a node's roles from their registrations, and collect what the present machine lacks for them."""

from collections.abc import Iterator, Sequence
from typing import cast

from resources.libraries.python import driver_registry
from resources.libraries.python.drivers.containers.engine_choice import missing as container_missing
from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.functions.mixed_kinds import MixedKinds
from resources.libraries.python.drivers.host.programs.requirements import missing as of_driver
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.findings.preflight_problem import PreflightProblem
from resources.libraries.python.model.plan import Medium, NfPlan, Plan, Port, TapPlan
from resources.libraries.python.model.testbed.nodes import DutNode, TgNode
from resources.libraries.python.planning.names import GENERATOR
from resources.libraries.python.testbed.roles.part import NetworkFunctions, TrafficGenerator, VSwitch


def switch(node: DutNode, context: DriverContext) -> VSwitch:
    """The driver of a DUT's vSwitch.

    Raises:
        Unsupported: There is none.
    """
    factory = driver_registry.vswitches()[node.vswitch].factory
    if factory is None:
        raise Unsupported(f"machines have no driver for the vSwitch {node.vswitch}")
    return cast(VSwitch, driver_registry.load(factory)(node, context))


def generator(node: TgNode, context: DriverContext, name: str | None = None) -> TrafficGenerator:
    """The driver of a TG's generator, or of a peer in its place.

    Raises:
        Unsupported: There is none.
    """
    name = name or node.generator.driver
    factory = driver_registry.generators()[name].factory
    if factory is None:
        raise Unsupported(f"machines have no driver for the generator {name}")
    return cast(TrafficGenerator, driver_registry.load(factory)(node, context))


def functions(
    node: DutNode, context: DriverContext, row: Sequence[NfPlan], taps: Sequence[TapPlan] = ()
) -> NetworkFunctions:
    """The drivers of NFs, one for each kind, as one.

    Args:
        node: Has their settings.
        context: The machine with its share of the plan.
        row: Inline ones.
        taps: Passive ones.

    Raises:
        Unsupported: There is none for a kind.
    """
    groups: dict[str, list[NfPlan | TapPlan]] = {}
    factories: dict[str, str] = {}
    every: tuple[NfPlan | TapPlan, ...] = (*row, *taps)
    for nf in every:
        known, passive = nf.kind.driver, isinstance(nf, TapPlan)
        if known.factory is None or (passive and not known.passive):
            raise Unsupported(f"machines have no driver for {'passive ' * passive}NFs of kind {nf.kind}")
        name = known.host or known.name
        groups.setdefault(name, []).append(nf)
        factories[name] = known.factory
    return MixedKinds(
        [driver_registry.load(factories[name])(node, context, group) for name, group in groups.items()],
        {side.name: function.name for function in row for side in (function.left, function.right)},
        context.groups,
    )


def past_the_kernel(node: TgNode | DutNode, plan: Plan) -> tuple[Port, ...]:
    """Physical ports that a node's generator or vSwitch drives without the kernel's driver, as the plan says."""
    ports = [port for link in plan.links if link.medium is Medium.CABLE for port in (link.a, link.b)]
    mine = [port for port in ports if (port.owner == GENERATOR) == isinstance(node, TgNode)]
    return tuple(port for port in mine if port.nic is not None and port.nic.attachment.unbinds)


def missing(node: TgNode | DutNode) -> Iterator[PreflightProblem]:
    """Requirements of a node's drivers that this machine lacks: of NFs the default and those not on request."""
    if isinstance(node, TgNode):
        yield from of_driver(driver_registry.generators()[node.generator.driver], node)
        return
    yield from of_driver(driver_registry.vswitches()[node.vswitch], node)
    yield from container_missing(node.container)
    for kind in node.containers:
        if kind == node.containers[0] or not kind.driver.on_request:
            yield from of_driver(kind.driver, node)


def missing_for_some(node: DutNode) -> Iterator[PreflightProblem]:
    """Requirements of a node's virtual machines, or of other NFs on request, that this machine lacks."""
    if node.vms is not None:
        yield from of_driver(node.vms.driver, node)
    requested = [kind.driver for kind in node.offered[1:] if kind.driver.on_request]
    found = (each for driver in requested for each in of_driver(driver, node))
    yield from dict.fromkeys(found)
