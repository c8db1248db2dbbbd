"""A plan without some of its service instances: what is left stays where it is, CPUs included."""

from collections.abc import Collection

from resources.libraries.python.model.plan import Plan, Segment
from resources.libraries.python.planning.names import GENERATOR, is_vswitch


def first_instances(plan: Plan, count: int) -> Plan:
    """The same plan with its first service instances only.

    So one instance is measured alone where it is when it has neighbours, on the same CPUs.

    Args:
        plan: Its instances share nothing but cables and the vSwitch.
        count: Instances that stay, 1 at least.

    Raises:
        ValueError: There are fewer, or instances share NFs.
    """
    if count not in plan.cell.instances:
        raise ValueError(f"{count} of {len(plan.cell.instances)} service instances")
    if shared := [function.name for function in plan.functions if not function.instance]:
        raise ValueError(f"service instances share {', '.join(shared)}")
    stay = range(count + 1)
    """0 is what all share: cables, and segments of these."""
    functions = tuple(function for function in plan.functions if function.instance in stay)
    links = tuple(link for link in plan.links if link.instance in stay)
    ports = {port.interface for link in links for port in (link.a, link.b)}
    owners = {port.owner for link in links for port in (link.a, link.b)}
    there = {function.name for function in functions} | owners | {GENERATOR, "system"}
    threads = tuple(each for each in plan.cores.threads if each.owner in there or is_vswitch(each.owner))
    return plan.model_copy(
        update={
            "cell": plan.cell.first_instances(count),
            "cores": plan.cores.model_copy(update={"threads": threads}),
            "links": links,
            "segments": tuple(_with(ports, segment) for segment in plan.segments if segment.instance in stay),
            "functions": functions,
            "taps": tuple(tap for tap in plan.taps if tap.instance in stay),
            "flows": tuple(flow for flow in plan.flows if flow.instance in stay),
            "paths": tuple(path for path in plan.paths if path.instance in stay),
        }
    )


def _with(ports: Collection[str], segment: Segment) -> Segment:
    """A segment without the ports of those that have gone."""
    members, copies = (tuple(name for name in row if name in ports) for row in (segment.members, segment.copies))
    return segment.model_copy(update={"members": members, "copies": copies})
