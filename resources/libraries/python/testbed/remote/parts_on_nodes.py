"""The parts of a cell whose drivers run on its nodes."""

import time
from collections.abc import Collection, Mapping, Sequence

from resources.libraries.python.errors import PlanError
from resources.libraries.python.model.counters import Sample
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.studies.chains.model.record import HOST, VSWITCH, Series
from resources.libraries.python.testbed.agent.calls import Role
from resources.libraries.python.testbed.agent.role_calls import (
    CABLES,
    COSTS,
    FEATURES,
    FUNCTIONS,
    GENERATOR,
    SAMPLER,
    SWITCH,
    TRACER,
    P,
    RemoteRole,
)
from resources.libraries.python.testbed.deployment.parts import Parts
from resources.libraries.python.testbed.remote.node import TestbedNode
from resources.libraries.python.testbed.remote.proxies import Merge, combined


def parts_on_nodes(
    plan: Plan, nodes: Mapping[str, TestbedNode], roles: Mapping[str, Collection[Role]], duts: Collection[str]
) -> Parts:
    """Combine the roles of all nodes.

    Args:
        plan: Of the cell, which is prepared on the nodes.
        nodes: By name.
        roles: Roles of every node in the cell.
        duts: Names of the nodes that are systems under test, in the order of the service.

    Raises:
        PlanError: No node has the vSwitch, the NFs or the generator.
    """

    def of_all(remote: RemoteRole[P]) -> P:
        return _as_one(remote, [nodes[name].role(remote) for name, has in roles.items() if remote.role in has], {})

    def of_duts(remote: RemoteRole[P], merge: Mapping[str, Merge]) -> P | None:
        found = [nodes[name].role(remote) for name in duts if remote.role in roles[name]]
        return _as_one(remote, found, merge) if found else None

    if missing := {Role.SWITCH, Role.FUNCTIONS, Role.GENERATOR} - {role for has in roles.values() for role in has}:
        raise PlanError(f"{plan.suite_id} has no {', '.join(sorted(missing))} on the nodes {', '.join(nodes)}")
    sender = next(nodes[name] for name, has in roles.items() if Role.GENERATOR in has)
    return Parts(
        cables=(of_all(CABLES),),
        switch=of_all(SWITCH),
        functions=of_all(FUNCTIONS),
        generator=sender.role(GENERATOR),
        clock=time.monotonic,
        sampler=of_duts(SAMPLER, {"read": _sample}),
        generator_counters=sender.generator_counters,
        features=of_duts(FEATURES, {"stop": _series, "cpu_s": _sum}),
        costs=of_duts(COSTS, {}),
        tracer=of_duts(TRACER, {"cpu_s": _sum}),
    )


def _as_one(remote: RemoteRole[P], found: Sequence[P], merge: Mapping[str, Merge]) -> P:
    return found[0] if len(found) == 1 else combined(remote, found, merge)


def _sample(samples: Sequence[Sample]) -> Sample:
    """Data threads of all nodes, and CPUs of the first, whose numbers they have."""
    return Sample(
        threads={name: time for sample in samples for name, time in sample.threads.items()},
        tasks={owner: tasks for sample in samples for owner, tasks in sample.tasks.items()},
        cpus=samples[0].cpus,
        backlog_dropped=sum(sample.backlog_dropped for sample in samples),
        squeezed=sum(sample.squeezed for sample in samples),
    )


def _series(rows: Sequence[tuple[Series, ...]]) -> tuple[Series, ...]:
    """All series of the first node; of the others those of NFs, as the machine and the vSwitch are the first one's."""
    others = (one for row in rows[1:] for one in row if one.owner not in (HOST, VSWITCH))
    return (*rows[0], *others)


def _sum(times_s: Sequence[float | None]) -> float | None:
    known = [value for value in times_s if value is not None]
    return sum(known) if known else None
