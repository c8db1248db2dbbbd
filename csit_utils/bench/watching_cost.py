"""What watching costs: one flow above the capacity of an NF, watched and not watched by turns in short blocks.

In a block watching is twenty times as frequent as in a study: it has one window of the tracer and two readings of the
sampler. Each costs the same, however many there are, so a study pays a twentieth of what a block does. That leaves a
twentieth of this machine's noise, and blocks are short because its speed differs less between moments than between
seconds. A window lies by chance within its tenth of a second, and a block is as long as that: it has one on average,
wherever it begins.

A round has two blocks that nobody watches, and one each with the sampler, with the tracer and with both, in an order by
chance; compared are logarithms of rates within a round. The two blocks that nobody watches are compared too: what this
machine's noise makes of nothing. Packets are counted where they come back, a short while after watching was switched.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from math import log
from statistics import median
from typing import Any

from csit_utils.bench.contrasts import Estimate, estimate, orders
from csit_utils.bench.flow_in_blocks import BlockFlow, NotOverloadedError, overload_pps, prompt
from csit_utils.bench.nf_under_load import ServiceUnderLoad, service
from csit_utils.bench.watchers import SAMPLER, TRACER, Watchers
from resources.libraries.python.drivers.probes.tracer.driver import PERIOD_S
from resources.libraries.python.errors import CsitError

_GOAL = 0.01
_TIMES = 20
"""As much watching as in a study."""
_BLOCK_S = PERIOD_S / _TIMES
_ROUNDS = 160
_FLOW_S, _ROUND_S = 15.0, 1.5
"""A new flow now and then: how its first packets meet may last as long as it does. Most for a round."""
_MOST_EMPTY = 3
_MORE = 1.4
"""The next load after one with which the NF kept up."""
BOTH = "both"
NOTHING, AGAIN = "nothing", "nothing again"
BLOCKS: Mapping[str, Collection[str]] = {
    NOTHING: (),
    AGAIN: (),
    SAMPLER: (SAMPLER,),
    TRACER: (TRACER,),
    BOTH: (SAMPLER, TRACER),
}
"""Who watches in a block."""
Rates = Mapping[str, float]
"""Packets per second by block, of one round."""


def measure(rounds: int = _ROUNDS) -> dict[str, Any]:
    """Throughput with and without watching.

    Args:
        rounds: Of five blocks; six or more for an interval.

    Returns:
        `ours`: what sampler and tracer together take in a study, as a share of the throughput; no peer, `ratio` is to
        the goal. `detail` has share and 95 % interval (see `contrasts.estimate`) of sampler, tracer, both and nothing,
        and the processor time that each of the two takes in a study, as a share of one CPU: that bounds what it takes
        of an NF by running, but is without what events cost the NF itself.

    Raises:
        Unsupported: This machine cannot run the local world.
        CsitError: Sampler or tracer saw nothing, or the NF was not the bottleneck.
    """
    with service() as here, ExitStack() as held:
        watchers = Watchers(here, held, _TIMES)
        with prompt(here.aside):
            found = _rounds(here, watchers, list(orders(tuple(BLOCKS), rounds)))
        return _summary(found, watchers.end())


def _rounds(here: ServiceUnderLoad, watchers: Watchers, every: Sequence[Sequence[str]]) -> list[Rates]:
    """Rounds of one flow after another; those of a flow with which the NF kept up are done once more with another."""
    found: list[Rates] = []
    load_pps, empty = overload_pps(here), 0
    while len(found) < len(every):
        try:
            rounds = _flow(here, load_pps, watchers, every[len(found) :])
        except NotOverloadedError:
            load_pps = overload_pps(here, load_pps * _MORE)
            continue
        empty = 0 if rounds else empty + 1
        if empty == _MOST_EMPTY:
            raise CsitError(f"{empty} flows after each other had no round in which packets came back in every block")
        found += rounds
    return found


def _flow(here: ServiceUnderLoad, load_pps: float, watchers: Watchers, every: Sequence[Sequence[str]]) -> list[Rates]:
    """As many rounds as one flow has time for."""
    rounds: list[Rates] = []
    lasts_s = min(_FLOW_S, _ROUND_S * (len(every) + 1))
    with BlockFlow(here, load_pps, lasts_s) as flow:
        for order in every:
            if flow.left_s() < _ROUND_S:
                break
            rates = {name: _rate(flow, watchers, BLOCKS[name]) for name in order}
            if all(rates.values()):  # else the machine stood still for a whole block
                rounds.append(rates)
    return rounds


def _rate(flow: BlockFlow, watchers: Watchers, who: Collection[str]) -> float:
    with ExitStack() as held:
        watchers.switch(who, held)
        rate_pps, lasted_s = flow.block(_BLOCK_S)
    watchers.watched(who, lasted_s)
    return rate_pps


def costs(found: Sequence[Rates]) -> dict[str, Estimate]:
    """What each way of watching takes in its blocks, as a share of the throughput, and what nothing takes."""

    def compared(name: str, plain: Callable[[Rates], float]) -> Estimate:
        return estimate([plain(rates) - log(rates[name]) for rates in found])

    def unwatched(rates: Rates) -> float:
        return (log(rates[NOTHING]) + log(rates[AGAIN])) / 2

    rows = {name: compared(name, unwatched) for name, who in BLOCKS.items() if who}
    return {**rows, NOTHING: compared(AGAIN, lambda rates: log(rates[NOTHING]))}


def _summary(found: Sequence[Rates], cpu: Mapping[str, float]) -> dict[str, Any]:
    rows = {name: row.divided(_TIMES) for name, row in costs(found).items()}
    shares = {name: share / _TIMES for name, share in cpu.items()}
    rate_pps = median(rates[NOTHING] for rates in found)
    return {
        "name": "watching_cost",
        "ours": rows[BOTH].middle,
        "peer": None,
        "goal": _GOAL,
        "ratio": round(rows[BOTH].middle / _GOAL, 2),
        "unit": "ratio",
        "note": f"of {rate_pps / 1e3:.0f} kpps, {_TIMES} times as much, divided by {_TIMES}, {len(found)} rounds: "
        + ", ".join(f"{name} {_share(row)}" for name, row in rows.items())
        + "; processor time of one CPU: "
        + ", ".join(f"{name} {share:.2%}" for name, share in shares.items()),
        "detail": {**{name: row._asdict() for name, row in rows.items()}, "cpu": shares},
    }


def _share(row: Estimate) -> str:
    if row.interval is None:
        return f"{row.middle:.2%}"
    low, high = row.interval
    return f"{row.middle:.2%} [{low:.2%} to {high:.2%}: {'' if high < _GOAL else 'not shown to be '}below {_GOAL:.0%}]"
