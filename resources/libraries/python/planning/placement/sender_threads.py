"""Threads of a generator that polls its ports: those of each pair of ports, and the load that they can send and count.

TRex has one thread that answers requests, one that receives, and the same number of sending threads for each pair of
ports, which share the streams of both (its manual, "Platform section configuration", `-c`).
"""

from resources.libraries.python import driver_registry
from resources.libraries.python.model.core_map import ThreadRole
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Frame
from resources.libraries.python.model.request.frames import frame as frame_of
from resources.libraries.python.model.testbed.nodes import TgNode
from resources.libraries.python.planning.linerate import max_rate, port_rate_pps
from resources.libraries.python.planning.names import GENERATOR

OTHER_THREADS = 2
"""Control and receiving."""
CORE_PPS = (10e6, 22e6)
"""Packets per second from a core: TRex's manual of its stateless mode says 10 to 22 million."""
_PORTS_OF_A_PAIR = 2
_SMALLEST = "64B"


def senders_per_pair(cpus: int, pairs: int, queues: int) -> int:
    """Sending threads of each pair of ports.

    Returns:
        At least 1; the caller checks that there are enough CPUs.
    """
    return max(1, min((cpus - OTHER_THREADS) // pairs, queues))


def generator_cpus(plan: Plan) -> tuple[int, ...]:
    """CPUs of a plan's generator, each once: those of its main threads first."""
    cores = plan.cores
    return tuple(dict.fromkeys((*cores.cpus(GENERATOR, ThreadRole.MAIN), *cores.cpus(GENERATOR))))


def is_alone(plan: Plan) -> bool:
    """Whether no data thread of the system under test has its place on the generator's CPUs."""
    # CPUs of different machines have the same numbers and nothing to do with each other.
    mine = {(thread.machine, thread.cpu) for thread in plan.cores.threads if thread.owner == GENERATOR}
    return bool(mine) and not any(
        (thread.machine, thread.cpu) in mine
        for thread in plan.cores.threads
        if thread.owner != GENERATOR and thread.role is ThreadRole.DATA
    )


def too_few_senders(plan: Plan, frame: Frame) -> str | None:
    """Warn that a generator's cores may not fill the cables; None if they can, or if it is unknown."""
    nics = {port.nic.port: port.nic for port in plan.ports(GENERATOR) if port.nic is not None}
    highest = max_rate(plan, frame)
    if highest is None or not nics or any(nic.rx_queues is None for nic in nics.values()):
        return None
    pairs = max(1, len(nics) // _PORTS_OF_A_PAIR)
    senders = senders_per_pair(len(generator_cpus(plan)), pairs, min(nic.rx_queues or 1 for nic in nics.values()))
    each_pps = highest.aggregate_pps / pairs / senders
    least, most = CORE_PPS
    if each_pps <= least:
        return None
    can = "may not be able to" if each_pps <= most else "cannot"
    return (
        f"{frame.name}: the generator's cores {can} send the highest load: {highest.aggregate_pps / 1e6:.1f} Mpps from "
        f"{pairs * senders} sending core{'s'[: pairs * senders > 1]} is {each_pps / 1e6:.1f} Mpps each; a core sends "
        f"{least / 1e6:.0f} to {most / 1e6:.0f} Mpps; raise nodes.TG.generator.cores"
    )


def counting_limit(node: TgNode) -> str | None:
    """Warn that one core of the generator counts all packets; None where others do, or its ports are slower than it."""
    driver = driver_registry.generators()[node.generator.driver]
    most_pps = driver.counted_pps(node) if driver.counted_pps is not None else None
    if most_pps is None:
        return None
    rates = [port_rate_pps(port, frame_of(_SMALLEST)) for port in node.interfaces.values()]
    if all(rates) and sum(rate_pps for rate_pps, _ in filter(None, rates)) <= most_pps:
        return None
    return (
        f"{driver.label} counts all packets of these NICs by its one receiving core, by its documentation about "
        f"{most_pps / 1e6:g} Mpps in all directions together: a result near or above that is the generator's"
    )
