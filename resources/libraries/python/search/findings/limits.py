"""The limit of a rate: findings from located losses and CPU use.

The place of the loss decides; the time of the data threads confirms or contradicts it:

- a thread that ran all the time (`FULL` of the time of sending): its owner is at its limit;
- one that had work all the time and ran for part of it: its CPU was used by other threads;
- one that was idle for half of the time or more: the cause is not lack of CPU, but a configured limit or bursts;
- in between, the time of threads is inconclusive, and the evidence says so.
"""

from collections.abc import Iterable, Mapping, Sequence

from resources.libraries.python.model.core_map import ThreadRole
from resources.libraries.python.model.findings import HopLoss, LocatedLosses, Usage
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.result import Finding, VerdictKind
from resources.libraries.python.quantities import rate
from resources.libraries.python.search.findings.locate import AND, by_owner

FULL = 0.9
"""Share of the time from which on a thread or CPU counts as busy all the time: the rest is waking and settling."""
IDLE = 0.5
"""Share of time with work below which no thread lacks CPU."""
_ALONE = 0.8
"""Share of its busy time in which a thread runs if no other thread takes its CPU."""
_SECOND = 0.25
"""A second kind of owner with at least this share of the losses limits as well."""
_MAX_LINES = 4
_MIN = 0.05
"""Owners with less of the losses share a line."""
_VSWITCH, _GENERATOR = "vswitch", "generator"
DATA_THREADS, POLL = "data threads", "poll"
"""The fact by which a driver says that its data threads run all the time, where that is not so of all of its kind."""
_Facts = Mapping[str, Mapping[str, str]]


def percent(share: float, digits: int = 0) -> str:
    """A share as percent."""
    return f"{100 * share:.{digits}f} %"


def limits(
    plan: Plan, located: LocatedLosses, numbers: tuple[str, ...], facts: Mapping[str, Mapping[str, str]] | None = None
) -> list[Finding]:
    """Findings about what limits some numbers.

    `facts`: What was found out about the parts, by role: whether their data threads poll, and what these did.

    Returns:
        Nothing where nothing was lost that could be located.
    """
    owners = by_owner(located.hops)
    total = sum(owners.values())
    if not total:
        return []
    kinds: dict[VerdictKind, int] = {}
    for owner, lost in owners.items():
        kind = _kind(owner)
        kinds[kind] = kinds.get(kind, 0) + lost
    leading = max(kinds, key=lambda kind: kinds[kind])
    findings = []
    for kind, lost in sorted(kinds.items(), key=lambda item: -item[1]):
        if kind is leading or lost >= _SECOND * total:
            for line in _lines(plan, located, kind, total, facts or {}):
                findings.append(Finding(kind=kind, text=line, numbers=numbers))
    return findings


def _kind(owner: str) -> VerdictKind:
    if owner == _VSWITCH or owner.startswith(f"{_VSWITCH}-"):
        return VerdictKind.VSWITCH_BOUND
    return VerdictKind.GENERATOR_BOUND if owner == _GENERATOR else VerdictKind.NF_BOUND


def _lines(plan: Plan, located: LocatedLosses, kind: VerdictKind, total: int, facts: _Facts) -> Iterable[str]:
    owners = {owner: lost for owner, lost in by_owner(located.hops).items() if _kind(owner) is kind}
    shown = [owner for owner, lost in owners.items() if lost >= _MIN * total][:_MAX_LINES] or list(owners)[:1]
    for owner in shown:
        hops = [loss for loss in located.hops if loss.owner == owner]
        lost = located.sent - located.received
        yield (
            f"at {rate(located.offered_pps)} {lost:,} of {located.sent:,} packets were lost, "
            f"{owners[owner]:,} of them at {owner}: {'; '.join(map(_where, hops[:_MAX_LINES]))}{_more(hops, 'place')}"
        )
        if located.usage is not None:
            yield from _of_cpus(plan, owner, hops, located.usage, facts)
    if len(owners) > len(shown):
        others = [owner for owner in owners if owner not in shown]
        rest = sum(owners[owner] for owner in others)
        yield f"{rest:,} of {total:,} packets were lost at {', '.join(others[:_MAX_LINES])}{_more(others, 'NF')}"


def _more(rows: Sequence[object], what: str) -> str:
    left = len(rows) - _MAX_LINES
    return f"; {left} more {what}{'s' if left > 1 else ''}" if left > 0 else ""


def _where(loss: HopLoss) -> str:
    flow = f"instance {loss.instance} {loss.direction}" if loss.instance else f"all instances {loss.direction}"
    return f"{loss.lost:,} in {flow} {cause_in_words(loss)}"


def cause_in_words(loss: HopLoss) -> str:
    """Return what happened to packets between two counters: `met a full receive queue at br0-nf-1-1-left`."""
    match loss.cause:
        case "queue":
            return f"met a full receive queue at {loss.next}"
        case "inside":
            return f"were received at {loss.last} and not sent at {loss.next}"
        case "link":
            return f"left {loss.last} and did not arrive at {loss.next}"


def _of_cpus(plan: Plan, owner: str, hops: Sequence[HopLoss], usage: Usage, facts: _Facts) -> Iterable[str]:
    """Whether the time of the owner's data threads agrees with the place of the loss."""
    if work := _work(owner, facts):
        yield f"{owner}'s data threads: {work}"
    if _polls(plan, owner, facts):
        yield f"{owner}'s data threads poll, so their CPU time does not show their load"
        return
    receivers = {port.interface: port.receiver for port in plan.ports(owner)}
    where = ((loss.last if loss.cause == "inside" else loss.next).partition(AND)[0] for loss in hops)
    places = {receivers.get(name, name) for name in where}
    threads = [thread for thread in usage.threads if thread.owner == owner and thread.interface in places]
    everywhere, usage = usage, _on_machine_of(plan, owner, usage)
    if not threads:
        yield from _of_planned_cpus(plan, owner, usage)
        return
    cpu = max({thread.cpu for thread in threads}, key=lambda each: _wanted(owner, each, usage))
    own, wanted = _own_share(owner, cpu, usage), _wanted(owner, cpu, usage)
    names = [thread.interface for thread in threads if thread.cpu == cpu]
    ports = f" ({', '.join(names[:_MAX_LINES])}{_more(names, 'port')})"
    name = f"{owner}'s data thread on CPU {cpu}{ports}"
    if wanted < IDLE:
        yield (
            f"{name} had work for only {percent(wanted)} of the time: packets are lost there by a limit or in bursts, "
            "not for lack of CPU"
        )
        yield from _others_at_their_limit(owner, everywhere)
    elif own < _ALONE * wanted:
        yield (
            f"{name} had work for {percent(wanted)} of the time and ran for {percent(own)}; the CPU had "
            f"{_sharers(cpu, usage)}: the place of the loss does not show which of them is slow"
        )
    elif wanted >= FULL:
        yield f"{name} was busy for {percent(wanted)} of the time"
    else:
        yield (
            f"{name} was busy for {percent(wanted)} of the time, which neither confirms nor rules out that it is "
            "the limit"
        )


def _on_machine_of(plan: Plan, owner: str, usage: Usage) -> Usage:
    """Only the machine that an owner is on: CPU 3 of another one is another CPU."""
    machine = _machine(plan, owner)
    return usage.model_copy(
        update={
            "threads": tuple(thread for thread in usage.threads if thread.machine == machine),
            "cpus": tuple(row for row in usage.cpus if row.machine == machine),
        }
    )


def _machine(plan: Plan, owner: str) -> str | None:
    return next((thread.machine for thread in plan.cores.threads if thread.owner == owner), None)


def _polls(plan: Plan, owner: str, facts: _Facts) -> bool:
    kind = next((function.kind for function in plan.functions if function.name == owner), None)
    if kind is not None and kind.driver.polls is not None:
        return kind.driver.polls
    return facts.get("vswitch" if kind is None else "functions", {}).get(DATA_THREADS) == POLL


def _work(owner: str, facts: _Facts) -> str:
    """Return the usage of an owner's data threads around the trial, if its driver reports it."""
    return (
        facts.get("vswitch", {}).get("work", "")
        if owner == _VSWITCH
        else facts.get("functions", {}).get(f"{owner} work", "")
    )


def _wanted(owner: str, cpu: int, usage: Usage) -> float:
    """Share of the time in which an owner had work for a CPU.

    It runs or waits; of several kernel threads of one owner on a CPU one waits while the other runs.
    """
    own = [thread for thread in usage.threads if (thread.owner, thread.cpu) == (owner, cpu)]
    longest = max((thread.running + thread.waiting for thread in own), default=0.0)
    return min(1.0, max(longest, sum(thread.running for thread in own)))


def _own_share(owner: str, cpu: int, usage: Usage) -> float:
    return sum(thread.running for thread in usage.threads if (thread.owner, thread.cpu) == (owner, cpu))


def _sharers(cpu: int, usage: Usage) -> str:
    """All that ran on a CPU, by owner."""
    shares: dict[str, float] = {}
    for each in usage.threads:
        if each.cpu == cpu:
            shares[each.owner] = shares.get(each.owner, 0.0) + each.running
    ordered = sorted(shares.items(), key=lambda item: -item[1])
    parts = [f"{owner} {percent(share)}" for owner, share in ordered[:_MAX_LINES]]
    if len(ordered) > _MAX_LINES:
        parts.append(f"{len(ordered) - _MAX_LINES} others {percent(sum(share for _, share in ordered[_MAX_LINES:]))}")
    foreign = _busy(usage, cpu) - sum(shares.values())
    if foreign >= 1 - FULL:
        parts.append(f"other threads {percent(foreign)}")
    return ", ".join(parts)


def _busy(usage: Usage, cpu: int) -> float:
    return sum(row.user + row.system + row.softirq for row in usage.cpus if row.cpu == cpu)


def _others_at_their_limit(owner: str, usage: Usage) -> Iterable[str]:
    places = {(thread.owner, thread.cpu) for thread in usage.threads if thread.owner not in {owner, _GENERATOR}}
    shares = {place: _own_share(*place, usage) for place in sorted(places)}
    (other, cpu), share = max(shares.items(), key=lambda item: item[1], default=(("", 0), 0.0))
    if share >= FULL:
        yield (
            f"this contradicts the CPU time of threads: {other}'s data thread on CPU {cpu} was busy for "
            f"{percent(share)}"
        )


def _of_planned_cpus(plan: Plan, owner: str, usage: Usage) -> Iterable[str]:
    """The planned CPUs of threads that cannot be identified."""
    planned = {thread.cpu for thread in plan.cores.threads if (thread.owner, thread.role) == (owner, ThreadRole.DATA)}
    known = [row.cpu for row in usage.cpus if row.cpu in planned]
    if known:
        busiest = max(known, key=lambda cpu: _busy(usage, cpu))
        share = min(1.0, _busy(usage, busiest))
        remark = ""
        if share < IDLE:
            remark = ": packets are lost there by a limit or in bursts, not for lack of CPU"
        yield f"CPU {busiest}, planned for {owner}, was busy for {percent(share)} of the time{remark}"
