"""From two readings of a sampler to shares of time."""

from collections.abc import Collection

from resources.libraries.python.model.findings import CpuLoad, ThreadLoad, Usage
from resources.libraries.python.model.measurements.counters import Sample
from resources.libraries.python.model.plan import Plan, Port


def usage(plan: Plan, before: Sample, after: Sample, sending_s: float) -> Usage:
    """Time of data threads and their CPUs while sending.

    Readings enclose a little more than the sending: the time of preparing and of settling, in which data threads have
    nothing to do. So their work is divided by the time of sending alone, and what exceeds it is cut off.

    `sending_s`: Seconds of sending of all trials in between; above 0.
    """
    sending_ns = sending_s * 1e9

    def share(ns: int) -> float:
        return min(1.0, max(0.0, ns / sending_ns))

    ports = plan.ports()
    machines = {thread.owner: thread.machine for thread in plan.cores.threads}
    planned = {owner: plan.cores.cpus(owner) for owner in {port.owner for port in ports}}
    threads: list[ThreadLoad] = []
    receivers: dict[str, Port] = {}
    for port in ports:
        receivers.setdefault(port.receiver, port)  # VLAN devices on a trunk share a thread, which counts once
    for name, port in receivers.items():
        if name in before.threads and name in after.threads:
            one, other = before.threads[name], after.threads[name]
            running = share(other.running_ns - one.running_ns)
            threads.append(
                ThreadLoad(
                    owner=port.owner,
                    interface=name,
                    cpu=planned[port.owner][port.data_thread],
                    running=running,
                    waiting=min(1.0 - running, share(other.waiting_ns - one.waiting_ns)),
                    machine=machines.get(port.owner),
                )
            )
    cpus = tuple(
        CpuLoad(
            cpu=cpu,
            user=share(after.cpus[cpu].user_ns - before.cpus[cpu].user_ns),
            system=share(after.cpus[cpu].system_ns - before.cpus[cpu].system_ns),
            softirq=share(after.cpus[cpu].softirq_ns - before.cpus[cpu].softirq_ns),
            stolen=share(after.cpus[cpu].stolen_ns - before.cpus[cpu].stolen_ns),
        )
        for cpu in sorted(before.cpus.keys() & after.cpus.keys())
    )
    return Usage(
        threads=tuple(threads),
        cpus=cpus,
        backlog_dropped=after.backlog_dropped - before.backlog_dropped,
        squeezed=after.squeezed - before.squeezed,
    )


def busy_cpus(cpus: Collection[int], before: Sample, after: Sample, seconds: float) -> float | None:
    """Return how many of some CPUs were busy, mean number; None where it is not known."""
    known = set(cpus) & before.cpus.keys() & after.cpus.keys()
    if not known or seconds <= 0:
        return None
    busy_ns = 0
    for cpu in known:
        one, other = before.cpus[cpu], after.cpus[cpu]
        busy_ns += other.user_ns + other.system_ns + other.softirq_ns
        busy_ns -= one.user_ns + one.system_ns + one.softirq_ns
    return busy_ns * 1e-9 / seconds
