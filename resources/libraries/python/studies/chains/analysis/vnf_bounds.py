"""What bounds a VNF alone: its CPUs, the network, or storage; with the evidence."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from resources.libraries.python.studies.chains.analysis.features import CPU, READ, ordinary
from resources.libraries.python.studies.chains.analysis.truth import BUSY, SATURATED
from resources.libraries.python.studies.chains.model.record import ChainRun, VnfBound
from resources.libraries.python.studies.chains.model.spec import Member

_MUCH_STORAGE = float(2**20)
"""Bytes a second from which on storage counts."""
_KERNEL = ("system_percent", "helper_percent")


def bounds(runs: Sequence[ChainRun]) -> Iterator[VnfBound]:
    """Say of each VNF what bounds it, at the highest volume that it was offered alone."""
    highest: dict[Member, ChainRun] = {}
    for run in runs:
        if len(run.chain.members) == 1 and run.failed is None:
            member = run.chain.members[0]
            if member not in highest or run.workload.volume_bps > highest[member].workload.volume_bps:
                highest[member] = run
    for member, run in highest.items():
        yield _bound(member, run)


def _bound(member: Member, run: ChainRun) -> VnfBound:
    means = _means(member.name, run)
    used, cpus = means.get(CPU, 0.0) / 100, run.cpus.get(member.name)
    share = used / cpus if cpus else None
    storage = means.get(READ, 0.0) + means.get("written_bytes_per_s", 0.0)
    offered, passed = run.offered_bps or 0.0, run.throughput_bps or 0.0
    load = f"{offered / 1e6:.4g} Mbit/s"
    forwards = f"forwards {passed / 1e6:.4g} of {load}"
    cpu = "CPU use unknown" if share is None else f"{100 * share:.0f} % of its CPUs"
    is_saturated = passed < (1 - SATURATED) * offered
    if storage >= _MUCH_STORAGE:
        return VnfBound(vnf=member.name, bound="disk", evidence=f"{storage / 2**20:.3g} MiB/s of storage at {load}")
    if share is not None and share >= BUSY:
        return VnfBound(vnf=member.name, bound="CPU", evidence=f"{forwards} with {cpu}")
    if is_saturated:
        return VnfBound(vnf=member.name, bound="network", evidence=f"{forwards} with {cpu}")
    kernel = sum(means.get(name, 0.0) for name in _KERNEL) / 100
    io = f", {100 * min(1.0, kernel / used):.0f} % of that in the kernel" if used and kernel else ""
    return VnfBound(vnf=member.name, bound="none", evidence=f"{forwards} with {cpu}{io}")


def _means(owner: str, run: ChainRun) -> Mapping[str, float]:
    kept = {series.feature: ordinary(series.values)[0] for series in run.series if series.owner == owner}
    return {name: fmean(values) for name, values in kept.items() if values}
