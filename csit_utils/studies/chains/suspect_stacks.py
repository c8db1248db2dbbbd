"""Call stacks of suspects beside those of their references, per packet."""

from collections.abc import Collection, Iterator

from csit_utils.analysis.flames import StackSide
from csit_utils.report.stack_sides import CellStacks, remarks
from csit_utils.report.units import bandwidth, percent
from resources.libraries.python.model.measurements.stacks import SEPARATOR, Stacks
from resources.libraries.python.studies.chains.analysis.truth import SAME_PERFORMANCE
from resources.libraries.python.studies.chains.model.record import (
    ChainsRecord,
    ChainStacks,
    ChainStudy,
    Reference,
    Suspect,
)
from resources.libraries.python.studies.chains.model.spec import Chain, Mode


def stacks_of_suspects(record: ChainsRecord) -> Iterator[CellStacks]:
    """Yield the suspects whose call stacks were sampled, the first ones first."""
    study = record.chain_study
    if study is None:
        return
    for suspect in study.suspects:
        if found := stacks_of(study, suspect, simulated=record.simulated):
            yield found


def stacks_of(study: ChainStudy, suspect: Suspect, *, simulated: bool) -> CellStacks | None:
    """Return a suspect beside its reference, without VNFs that only one of them has; None where one has no stacks."""
    pair, reference = study.stacks_of(suspect), suspect.reference
    if pair is None or reference is None or pair[0].stacks is None or pair[1].stacks is None:
        return None
    orders = [set(each.chain.order) for each in pair]
    a, b = (StackSide((_without(each.stacks, orders[0] ^ orders[1]),)) for each in pair if each.stacks is not None)
    if not a.ns_per_sample or not b.ns_per_sample:
        return None
    load = bandwidth(reference.workload.volume_bps)
    return CellStacks(
        f"{suspect.chain.name} beside {reference.chain.name} at {load}",
        a,
        b,
        simulated,
        (*_remarks(study, suspect, reference, pair), *remarks(a, b)),
        per_packet=True,
        sides=(reference.chain.name, suspect.chain.name),
    )


def _without(found: Stacks, owners: Collection[str]) -> Stacks:
    nodes = []
    for node in found.nodes:
        kept = {stack: count for stack, count in node.stacks.items() if stack.partition(SEPARATOR)[0] not in owners}
        nodes.append(node.model_copy(update={"stacks": kept}))
    return found.model_copy(update={"nodes": tuple(nodes)})


def _remarks(
    study: ChainStudy, suspect: Suspect, reference: Reference, pair: tuple[ChainStacks, ChainStacks]
) -> Iterator[str]:
    yield f"the reference is {reference.relation}"
    missing = [name for name in suspect.chain.order if name not in reference.chain.order]
    if missing:
        hops = [1 + _inline(study, chain) for chain in (suspect.chain, reference.chain)]
        yield (
            f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} left out; the vSwitch forwards a packet "
            f"{hops[0]} times, in the reference {hops[1]} times"
        )
    arrived = [each.stacks.received / (each.stacks.load_pps * each.stacks.trial_s) for each in pair if each.stacks]
    if abs(arrived[1] - arrived[0]) > SAME_PERFORMANCE:
        yield (
            f"{percent(arrived[1])} of the packets came back, {percent(arrived[0])} in the reference: times are per "
            "packet that came back, and include work for those that did not"
        )
    for each in pair:
        before = next(
            (run.throughput_bps for run in study.runs if (run.chain, run.workload) == (each.chain, each.workload)), None
        )
        now = each.throughput_bps
        if before is not None and now is not None and abs(now - before) > SAME_PERFORMANCE * max(now, before):
            yield (
                f"{each.chain.name} had {bandwidth(now)} when it was sampled, {bandwidth(before)} when it was measured"
            )


def _inline(study: ChainStudy, chain: Chain) -> int:
    return sum(study.spec.vnf(name).mode is Mode.INLINE for name in chain.order)
