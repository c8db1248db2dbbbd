"""What watching costs: one flow above the capacity of an NF, watched and not watched by turns in short blocks.

A block has whole seconds, and so as many readings as seconds. Packets are counted where they come back, a short while
after watching was switched. A round has two blocks that nobody watches, and one each with the sampler, with the tracer
and with both, in an order by chance; compared are logarithms of rates within a round. The two blocks that nobody
watches are compared too: what this machine's noise makes of nothing.

Some rounds have watching as it is in a study, others have ten times as much of it, so that the same noise hides a tenth
only. More watching never costs less, so ten times is a bound of once; a tenth of it is the cost of once where each
reading and each window costs the same, which the processor time of both kinds of rounds shows.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from math import log
from statistics import median
from typing import Any, NamedTuple

from csit_utils.bench.contrasts import Estimate, estimate, orders
from csit_utils.bench.flow_in_blocks import Flow, overload_pps, prompt
from csit_utils.bench.nf_under_load import Service, service
from csit_utils.bench.watchers import SAMPLER, TRACER, Watchers

_GOAL = 0.01
_ROUNDS = 16
_BLOCK_S = 1.0
_TIMES = 10
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


class Kind(NamedTuple):
    """What rounds of one kind have shown."""

    times: int
    """As much watching as in a study."""
    rates: Sequence[Rates]
    cpu: Mapping[str, float]
    """Processor time of sampler and tracer while they watch, as a share of one CPU."""

    def costs(self) -> dict[str, Estimate]:
        """Of watching as it is in a study."""
        return {name: one.divided(self.times) for name, one in costs(self.rates).items()}


def measure(rounds: int = _ROUNDS, block_s: float = _BLOCK_S, times: Iterable[int] = (1, _TIMES)) -> dict[str, Any]:
    """Throughput with and without watching.

    Args:
        rounds: Of five blocks, of each kind; six or more for an interval.
        block_s: Length of a block in whole seconds.
        times: How many times as much watching as in a study, for each kind of rounds.

    Returns:
        `ours`: what sampler and tracer together take, as a share of the throughput, by the last kind of rounds; no
        peer, `ratio` is to the goal. `detail` has for each kind share and 95 % interval (see `contrasts.estimate`) of
        sampler, tracer, both and nothing, and the processor time of each of the two while it watches, as a share of
        one CPU: that bounds what it takes of an NF by running, but is without what events cost the NF itself.

    Raises:
        Unsupported: This machine cannot run the local world.
        CsitError: Sampler or tracer saw nothing, or the NF was not the bottleneck.
    """
    with service() as here:
        load_pps = overload_pps(here)
        return _summary([_kind(here, load_pps, number, rounds, block_s) for number in times], block_s)


def _kind(here: Service, load_pps: float, times: int, rounds: int, block_s: float) -> Kind:
    with ExitStack() as held:
        watchers = Watchers(here, held, times)
        with prompt(here.aside):
            rates = [_round(here, load_pps, watchers, order, block_s) for order in orders(tuple(BLOCKS), rounds)]
        return Kind(times, rates, watchers.end())


def _round(here: Service, load_pps: float, watchers: Watchers, order: Sequence[str], block_s: float) -> Rates:
    rates: dict[str, float] = {}
    with Flow(here, load_pps, len(order), block_s) as flow:
        for name in order:
            with ExitStack() as held:
                watchers.switch(BLOCKS[name], held)
                rates[name], lasted_s = flow.block()
            watchers.watched(BLOCKS[name], lasted_s)
    return rates


def costs(found: Sequence[Rates]) -> dict[str, Estimate]:
    """What each way of watching takes, as a share of the throughput, and what nothing takes."""

    def compared(name: str, plain: Callable[[Rates], float]) -> Estimate:
        return estimate([plain(rates) - log(rates[name]) for rates in found])

    def unwatched(rates: Rates) -> float:
        return (log(rates[NOTHING]) + log(rates[AGAIN])) / 2

    rows = {name: compared(name, unwatched) for name, who in BLOCKS.items() if who}
    return {**rows, NOTHING: compared(AGAIN, lambda rates: log(rates[NOTHING]))}


def _summary(kinds: Sequence[Kind], block_s: float) -> dict[str, Any]:
    cost = kinds[-1].costs()[BOTH].middle
    rate_pps = median(rates[NOTHING] for kind in kinds for rates in kind.rates)
    return {
        "name": "watching_cost",
        "ours": cost,
        "peer": None,
        "goal": _GOAL,
        "ratio": round(cost / _GOAL, 2),
        "unit": "ratio",
        "note": f"of {rate_pps / 1e3:.0f} kpps, blocks of {block_s:g} s; {'; '.join(map(_text, kinds))}",
        "detail": {
            f"{kind.times} x": {**{name: row._asdict() for name, row in kind.costs().items()}, "cpu": dict(kind.cpu)}
            for kind in kinds
        },
    }


def _text(kind: Kind) -> str:
    how = "watched as in a study" if kind.times == 1 else f"watched {kind.times} times as much, {kind.times}th part"
    rows = ", ".join(f"{name} {_share(row)}" for name, row in kind.costs().items())
    cpu = ", ".join(f"{name} {share / kind.times:.2%}" for name, share in kind.cpu.items())
    return f"{how} ({len(kind.rates)} rounds): {rows}, processor time of one CPU: {cpu}"


def _share(row: Estimate) -> str:
    if row.interval is None:
        return f"{row.middle:.2%}"
    low, high = row.interval
    return f"{row.middle:.2%} [{low:.2%} to {high:.2%}: {'' if high < _GOAL else 'not shown to be '}below {_GOAL:.0%}]"
