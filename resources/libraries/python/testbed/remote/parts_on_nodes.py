"""The parts of a cell whose drivers run on several nodes, in one agent each."""

import time
from collections.abc import Collection, Mapping

from resources.libraries.python.errors import PlanError
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.testbed.agent.calls import Prepared, Role, Watcher
from resources.libraries.python.testbed.deployment.parts import Parts
from resources.libraries.python.testbed.remote.combined_nodes import (
    FunctionsTogether,
    SamplersTogether,
    SystemsTogether,
    Together,
)
from resources.libraries.python.testbed.remote.link import Link
from resources.libraries.python.testbed.remote.parts import (
    RemoteFunctions,
    RemoteGenerator,
    RemotePart,
    RemoteSampler,
    RemoteSystem,
)
from resources.libraries.python.testbed.remote.watching import (
    RemoteCosts,
    RemoteFeatures,
    RemoteTracer,
    costs_together,
    features_together,
    tracers_together,
)


def parts_on_nodes(
    plan: Plan, links: Mapping[str, Link], prepared: Mapping[str, Prepared], duts: Collection[str]
) -> Parts:
    """Put the roles of all nodes together.

    Args:
        plan: Of the cell.
        links: To every node.
        prepared: What every node has of the cell.
        duts: Names of the nodes that are systems under test, in the order of the service.

    Raises:
        PlanError: No node has the vSwitch, the NFs or the generator.
    """

    def on(role: Role) -> list[Link]:
        return [links[name] for name, has in prepared.items() if role in has.roles]

    def watching(who: Watcher) -> list[Link]:
        return [links[name] for name in duts if who in prepared[name].watchers]

    if not on(Role.SWITCH) or not on(Role.FUNCTIONS) or not on(Role.GENERATOR):
        raise PlanError(f"{plan.suite_id} has no vSwitch, NFs or generator on the nodes {', '.join(links)}")
    generator = RemoteGenerator(on(Role.GENERATOR)[0], Role.GENERATOR)
    return Parts(
        cables=(Together([RemotePart(link, Role.CABLES) for link in on(Role.CABLES)]),),
        switch=SystemsTogether([RemoteSystem(link, Role.SWITCH) for link in on(Role.SWITCH)]),
        functions=FunctionsTogether([RemoteFunctions(link, Role.FUNCTIONS) for link in on(Role.FUNCTIONS)]),
        generator=generator,
        clock=time.monotonic,
        sampler=SamplersTogether([RemoteSampler(links[name]) for name in duts if prepared[name].sampler]),
        generator_counters=generator.counters,
        features=features_together([RemoteFeatures(link) for link in watching(Watcher.FEATURES)]),
        costs=costs_together([RemoteCosts(link) for link in watching(Watcher.COSTS)]),
        tracer=tracers_together([RemoteTracer(link) for link in watching(Watcher.TRACER)]),
    )
