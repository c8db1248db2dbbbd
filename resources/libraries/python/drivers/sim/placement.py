"""Where simulated data threads run: on the logical CPUs of the plan."""

from resources.libraries.python.model.plan import Plan


def planned_cpus(plan: Plan, owners: frozenset[str], moved: frozenset[str]) -> dict[str, frozenset[int]]:
    """Logical CPU of the data thread behind each interface of some owners; those that moved are on CPU 0."""
    cpus = {owner: plan.cores.cpus(owner) for owner in owners}
    return {
        port.interface: frozenset({0 if port.interface in moved else cpus[port.owner][port.data_thread]})
        for link in plan.links
        for port in (link.a, link.b)
        if port.owner in owners
    }
