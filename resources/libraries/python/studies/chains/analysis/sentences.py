"""Sentences about what is worse than predicted, what it is due to, and what was judged."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from resources.libraries.python.model.measurements.features import CHAIN, VSWITCH
from resources.libraries.python.quantities import MINUS, bandwidth, counted, grouped
from resources.libraries.python.studies.chains.analysis.causes import FEWEST_COMPARED
from resources.libraries.python.studies.chains.analysis.features import (
    IDLE_LATENCY,
    LATENCY,
    LOSS,
    READ,
    THROTTLED,
    THROUGHPUT,
    WAITING,
)
from resources.libraries.python.studies.chains.analysis.prediction import CPU_PER_PACKET, DELAY, LATENCIES, Judged
from resources.libraries.python.studies.chains.model import ChainStudy, CommonCause, Excess, Suspect, VnfBound
from resources.libraries.python.studies.chains.model.spec import Chain, Workload

_LIKELY = 0.05
"""A chance from which on the answer says that it may be one."""
_UP_TO = 1.25
"""Times the smallest excess of a cause from which on its size depends on chain or load."""
_WHOLE = 100.0
"""Percent of the time of one thread."""
_MAX_NAMED = 6
_MAX_SUSPECTS = 5
_MAX_REASONS = 4


def _percent(ratio: float) -> str:
    return f"{grouped(100 * ratio, 3)} %"


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if abs(seconds) >= 1e-3 else f"{seconds * 1e6:.3g} µs"


def _cpus(percent: float) -> str:
    """Time of one thread in percent; of several, as a number of threads."""
    if abs(percent) <= _WHOLE:
        return f"{percent:.3g} % of the time"
    return f"{percent / _WHOLE:.3g} threads on average"


_EXCESS: Mapping[str, Callable[[str, Excess], str]] = {
    THROUGHPUT: lambda _, each: (
        f"throughput is {each.measured / 1e6:.4g} Mbit/s, {_percent(each.excess)} below the "
        f"{each.expected / 1e6:.4g} Mbit/s that its VNFs alone predict"
    ),
    LOSS: lambda at, each: (
        f"{at} loses {_percent(each.measured)} of the packets, {_percent(each.expected)} predicted"
        if at
        else f"{_percent(each.measured)} of the packets are lost, {_percent(each.expected)} predicted"
    ),
    LATENCY: lambda _, each: (
        f"latency under load is {_time(each.measured)}, {_time(each.excess)} above the {_time(each.expected)} that "
        "its VNFs alone predict"
    ),
    IDLE_LATENCY: lambda _, each: (
        f"latency without load is {_time(each.measured)}, {_time(each.excess)} above the {_time(each.expected)} that "
        "its VNFs alone predict"
    ),
    DELAY: lambda at, each: (
        f"{at} delays a packet without load by {_time(each.measured)}, {_time(each.expected)} predicted"
    ),
    WAITING: lambda at, each: (
        f"{at} waits for a CPU that others use: {_cpus(each.measured)}, {_cpus(each.expected)} predicted"
    ),
    THROTTLED: lambda at, each: (
        f"{at} is throttled, as its CPU quota is used up: {_cpus(each.measured)}, {_cpus(each.expected)} alone"
    ),
    READ: lambda at, each: (
        f"{at} reads {each.measured / 2**20:.3g} MiB/s from storage, {each.expected / 2**20:.3g} MiB/s alone: its "
        "memory is smaller than its working set"
    ),
    CPU_PER_PACKET: lambda at, each: (
        f"{at} takes {each.measured * 1e6:.3g} µs of CPU time per packet, {each.expected * 1e6:.3g} µs alone"
    ),
}


def excess_in_words(each: Excess) -> str:
    """A sentence with the numbers, the interval and the load."""
    at = "" if each.owner == CHAIN else "the vSwitch" if each.owner == VSWITCH else each.owner
    load = "" if each.feature in {IDLE_LATENCY, DELAY} else f" at {each.workload.volume_bps / 1e6:.4g} Mbit/s"
    error = f"excess {_interval(each)}, {each.runs} runs" if each.high > each.low else f"{each.runs} runs"
    if each.runs == 1:
        error = error.removesuffix("1 runs") + "1 run"
    return f"{_EXCESS[each.feature](at, each)}{load} ({error})"


def _excess_amount(feature: str, value: float) -> str:
    if feature == READ:
        text = f"{value / 2**20:.3g} MiB/s"
    elif feature in LATENCIES:
        text = _time(value)
    else:
        text = _cpus(value) if feature in {WAITING, THROTTLED} else _percent(value)
    return text.replace("-", MINUS)


def _interval(each: Excess | CommonCause) -> str:
    """Both ends, with the unit once where it is the same."""
    low, high = (_excess_amount(each.feature, end) for end in (each.low, each.high))
    number, unit = low.split(" ", 1)
    return f"{number if high.endswith(f' {unit}') else low} to {high}"


_EFFECT: Mapping[str, Callable[[str, str], str]] = {
    THROUGHPUT: lambda _, much: f"carries {much} less than predicted",
    LOSS: lambda at, much: f"loses {much} of the packets{f' in {at}' if at else ''}",
    LATENCY: lambda _, much: f"takes {much} longer under load than predicted",
    IDLE_LATENCY: lambda _, much: f"takes {much} longer than predicted",
    DELAY: lambda at, much: f"is delayed {much} more in {at} than predicted",
    WAITING: lambda at, much: f"lets {at} wait for a CPU more than predicted, by {much}",
    THROTTLED: lambda at, much: f"has {at} throttled more than alone, by {much}",
    READ: lambda at, much: f"has {at} read {much} more from storage than alone",
    CPU_PER_PACKET: lambda at, much: f"takes {much} more CPU time per packet in {at} than alone",
}


def workload_words(workload: Workload) -> str:
    """`UDP, 4 Mbit/s, 16 sessions, 64B`."""
    sessions = counted(workload.sessions, "session")
    return f"{workload.protocol.value}, {bandwidth(workload.volume_bps)}, {sessions}, {workload.frame.name}"


def cause_in_words(cause: CommonCause) -> str:
    """A sentence: which chains, what is wrong with them, with which error, and what else describes them."""
    at = "" if cause.owner == CHAIN else "the vSwitch" if cause.owner == VSWITCH else cause.owner
    interval = f"; 95 % interval {_interval(cause)}" if cause.high > cause.low else ""
    some = "chain" if len(cause.chains) == 1 else "chains"
    others = f", none of the other {cause.others}" if cause.others else ""
    much = f"{'up to ' * (cause.excess > _UP_TO * cause.smallest)}{_excess_amount(cause.feature, cause.excess)}"
    text = f"{cause.what} {_EFFECT[cause.feature](at, much)} ({len(cause.chains)} {some}{others}{interval})"
    if cause.only_under:
        text += f"; only under {' and under '.join(map(workload_words, cause.only_under))}"
    if cause.same:
        same = " and ".join(f"those {each}" for each in cause.same[:_MAX_NAMED])
        text += f"; this study cannot tell them apart from {same}"
    if cause.chance is not None and cause.chance > _LIKELY:
        text += (
            f"; it may be chance: {_percent(min(1.0, cause.chance))} of all choices of {len(cause.chains)} of these "
            "chains have something in common"
        )
    return text


def judgement(judged: Judged, chains: Sequence[Chain], *, has_path: bool) -> Iterator[str]:
    """What was judged with which error, and what could not be judged."""
    longer = [chain for chain in chains if len(chain.members) > 1]
    if not longer:
        yield "no chain of two or more VNFs was measured, so that there is none to judge"
        return
    count = len(longer) - len(judged.unknown)
    if judged.unknown:
        names = ", ".join(chain.name for chain in judged.unknown[:_MAX_NAMED])
        more = f" and {len(judged.unknown) - _MAX_NAMED} more" if len(judged.unknown) > _MAX_NAMED else ""
        yield f"not compared with their VNFs alone, of which one was not measured: {names}{more}"
    if count:
        by = "repeated runs" if judged.repeated else "single runs, whose spread is unknown"
        chains_are = "1 chain is" if count == 1 else f"{count} chains are"
        error = "; false alarms in at most 1 % of studies" if judged.repeated or not judged.worse else ""
        yield (
            f"{chains_are} compared with what the VNFs alone predict, by {by}: reported are 0.1 points of loss and "
            "more, 5 % of latency, 10 % of throughput where a VNF is saturated (30 and 25 % where VNFs share CPUs), "
            f"5 % of time throttled or waiting for a CPU{error}"
        )
    if not has_path:
        yield "latency was not compared: the path without VNFs was not measured"
    if 0 < count < FEWEST_COMPARED:
        yield f"too few chains ({count}) to judge what those that are worse have in common"


def verdict_in_words(study: ChainStudy) -> str:
    """What a study without suspects found, or that it could not judge; never the one in the place of the other."""
    return "; ".join(["no suspects" if study.is_judged else "too few chains to judge", *study.judged])


def bound_in_words(found: VnfBound) -> str:
    """`nat is CPU-bound: forwards 96 of 120 Mbit/s with 99 % of its CPUs`."""
    what = "at no limit alone" if found.bound == "none" else f"{found.bound}-bound"
    return f"{found.vnf} is {what}: {found.evidence}"


def headline(found: ChainStudy) -> str:
    """Return the number of measured chains, and the first suspect with its reason."""
    measured = len({run.chain for run in found.runs if run.failed is None})
    failed = len({run.chain for run in found.runs if run.failed is not None})
    begin = f"{measured} of {found.chains} chains were measured" if measured < found.chains else f"{measured} chains"
    failures = f", {failed} failed" if failed else ""
    if not found.suspects:
        return f"{begin}{failures}; {verdict_in_words(found)}"
    if found.causes:
        return f"{begin}{failures}; {cause_in_words(found.causes[0])}"
    first = found.suspects[0]
    planted = " (a fault was planted in it)" if first.planted else ""
    reason = f": {first.reasons[0]}" if first.reasons else ""
    suspects = counted(len(found.suspects), "suspect")
    return f"{begin}{failures}; {suspects}, first {first.chain.name}{planted}{reason}"


def sentences(found: ChainStudy) -> Iterator[str]:
    """The first suspects with their reasons, bounds of VNFs, and what could not be judged or measured."""
    failed: dict[str, dict[str, None]] = {}
    for run in found.runs:
        if run.failed:
            failed.setdefault(run.failed, {})[run.chain.name] = None
    yield from map(cause_in_words, found.causes[:_MAX_SUSPECTS])
    for rank, suspect in enumerate(found.suspects[:_MAX_SUSPECTS], 1):
        yield _suspect(rank, suspect)
        for reason in suspect.reasons[:_MAX_REASONS]:
            yield f"    {reason}"
        if (pair := found.stacks_of(suspect)) and suspect.reference is not None:
            yield f"    call stacks: {pair[1].sampled}"
            yield f"    of {suspect.reference.chain.name} ({suspect.reference.relation}): {pair[0].sampled}"
    if len(found.suspects) > _MAX_SUSPECTS:
        yield f"and {len(found.suspects) - _MAX_SUSPECTS} more suspects"
    yield from map(bound_in_words, found.bounds)
    if found.suspects:
        yield from found.judged  # without suspects they are in the headline
    yield from found.notes
    for reason, names in failed.items():
        yield f"not measured: {'; '.join(names)}: {reason}"


def _suspect(rank: int, suspect: Suspect) -> str:
    fault = f"; a fault was planted: {suspect.planted}" if suspect.planted else ""
    by = " and ".join(suspect.rules)
    return f"suspect {rank} by {by}: {suspect.chain.name}, mean Cook's distance {suspect.mean_distance:.3g}{fault}"
