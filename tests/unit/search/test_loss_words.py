"""Loss patterns of mechanisms: each is played packet by packet, and only the numbers that arrive are handed over."""

import re
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from random import Random

import numpy as np
import numpy.typing as npt
import pytest

from resources.libraries.python.drivers.generators.losses import count_losses
from resources.libraries.python.model.measurements.trial import Direction, FlowLosses
from resources.libraries.python.model.result import LossesAtLoad
from resources.libraries.python.search.losses import (
    LossPattern,
    loss_trial,
    losses_in_words,
    losses_of,
    pattern_of,
    rank,
    worst_flow,
)
from tests.builders import finished
from tests.unit.drivers.generators.counted_arrivals import counted
from tests.unit.search.search_fakes import FRAME

BEGIN_NS = 10**18


def told(arrivals: Sequence[int] | npt.NDArray[np.int64], sent: int, load_pps: float) -> FlowLosses:
    found = count_losses(counted(arrivals, sent, kept=sent), (BEGIN_NS, 1e9 / load_pps))
    return FlowLosses(instance=1, direction=Direction.FORWARD, **asdict(found))


def tail_drop(times_s: Iterable[float], *, room: int, service_s: Callable[[float], float]) -> list[int]:
    """Numbers of packets that a queue takes, whose server needs `service_s` of the time at which it begins."""
    ends: deque[float] = deque()
    free_s, taken = 0.0, []
    for number, now_s in enumerate(times_s):
        while ends and ends[0] <= now_s:
            ends.popleft()
        if len(ends) < room:
            begin_s = max(free_s, now_s)
            free_s = begin_s + service_s(begin_s)
            ends.append(free_s)
            taken.append(number)
    return taken


def even(load_pps: float, sent: int) -> list[float]:
    return [number / load_pps for number in range(sent)]


@pytest.mark.parametrize("offset", [0, 13, 399])
def test_bursts_of_32_every_4_ms(offset: int) -> None:
    arrived = [number for number in range(100_000) if (number + offset) % 400 >= 32]
    assert losses_in_words(told(arrived, 100_000, 100_000)) == "bursts of 32 every 4 ms (1 in 12.5 lost)"


@pytest.mark.parametrize("seed", range(5))
def test_1_in_1000_at_random(seed: int) -> None:
    arrived = np.flatnonzero(np.random.default_rng(seed).integers(1000, size=1_000_000))
    said = losses_in_words(told(arrived, 1_000_000, 100_000))
    assert re.fullmatch(r"1 in (9\d\d|1,0\d\d|1,1\d\d) at random", said)


def test_a_full_queue_with_irregular_service_drops_evenly() -> None:
    random = Random(3)
    taken = tail_drop(even(100_000, 100_000), room=256, service_s=lambda _: random.uniform(0.8, 1.6) / 100_000)
    found = told(taken, 100_000, 100_000)
    assert pattern_of(found) is LossPattern.EVEN
    assert losses_in_words(found).endswith("more evenly spread than at random: a queue that stays full")


def test_a_full_queue_with_bursty_arrivals_loses_bursts() -> None:
    random, now_s, times_s = Random(4), 0.0, []
    while len(times_s) < 100_000:
        times_s += [now_s] * random.randint(100, 400)  # another flow's batch in front of this one's packets
        now_s += random.expovariate(1 / 0.004)
    taken = tail_drop(times_s[:100_000], room=256, service_s=lambda _: 1e-6)
    found = told(taken, 100_000, 100_000)
    assert pattern_of(found) is LossPattern.BURSTS
    assert re.match(r"bursts of \d+ .*at irregular times, \S+ ms apart", losses_in_words(found)), losses_in_words(found)


@pytest.mark.parametrize("period_s", [0.001, 0.004, 0.01])
def test_a_server_that_pauses_regularly_loses_at_its_period(period_s: float) -> None:
    def service_s(begin_s: float) -> float:
        left_s = 0.3 * period_s - begin_s % period_s
        return max(0.0, left_s) + 2e-6

    taken = tail_drop(even(200_000, 200_000), room=32, service_s=service_s)
    found = told(taken, 200_000, 200_000)
    assert pattern_of(found) is LossPattern.PERIODIC
    assert f" every {period_s * 1000:g} ms (" in losses_in_words(found)


@pytest.mark.parametrize("every", [33, 61, 100, 250])
def test_a_short_period_with_gaps_does_not_alias(every: int) -> None:
    random = Random(every)
    lost = {number for number in range(0, 1_000_000, every) if random.random() < 0.8}
    found = told([number for number in range(1_000_000) if number not in lost], 1_000_000, 1_000_000)
    assert found.period_s == pytest.approx(every * 1e-6, rel=1e-3)
    assert losses_in_words(found).startswith("single packets every ")


def test_two_paths_reorder_copies_are_duplicates_and_neither_loses() -> None:
    random = Random(7)
    arrivals = sorted(range(50_000), key=lambda number: number + (20.5 if random.random() < 0.1 else 0.0))
    found = told(arrivals, 50_000, 100_000)
    said = losses_in_words(found)
    assert said.startswith("none of 50,000 packets lost; ") and re.search(r", by up to 2\d packets$", said)
    late = sum(number < max(arrivals[max(0, place - 60) : place], default=-1) for place, number in enumerate(arrivals))
    assert found.order.reordered == late
    random = Random(8)
    arrivals = [number for number in range(20_000) for _ in range(1 + (random.random() < 0.01))]
    found = told(arrivals, 20_000, 100_000)
    assert losses_in_words(found) == f"none of 20,000 packets lost; {len(arrivals) - 20_000:,} duplicates"
    late_copies = [*range(20_000), *range(0, 20_000, 100)]
    assert losses_in_words(told(late_copies, 20_000, 100_000)) == "none of 20,000 packets lost; 200 duplicates"


def test_a_flow_of_which_nothing_or_little_arrives_or_whose_log_is_cut() -> None:
    assert losses_in_words(told([], 1000, 100_000)) == "all 1,000 packets lost"
    assert losses_in_words(told(range(1, 1000), 1000, 100_000)).endswith("one at a time: too few for a pattern")
    cut = told(range(600), 1000, 100_000)
    assert losses_in_words(cut) == "one burst of 400 packets in 4 ms (40.0 % lost)"
    arrivals = [number ^ 1 for number in range(1000)]
    found = count_losses(counted(arrivals, 1000, kept=100), (BEGIN_NS, 1e4))
    flow = FlowLosses(instance=1, direction=Direction.FORWARD, **asdict(found))
    assert losses_in_words(flow) == "none of 1,000 packets lost; 500 packets reordered (50.0 %)"
    assert flow.order.unknown == "the order of 100 of 500 reordered packets was kept"


def test_a_full_queue_whose_server_also_pauses_is_not_one_burst() -> None:
    lost = {number for number in range(100_000) if number % 6 == 0 or ((number // 600) % 37 == 5 and number % 600 < 20)}
    said = losses_in_words(told([number for number in range(100_000) if number not in lost], 100_000, 100_000))
    assert not said.startswith("one burst")
    random, arrived, number = Random(9), list[int](), 0
    while number < 9_000:
        arrived += range(number, number + random.randint(1, 9))
        number += 9 + random.randint(1, 9)
    irregular = told([number for number in arrived if number < 9_000], 9_000, 100_000)
    assert pattern_of(irregular) is LossPattern.BURSTS
    assert re.fullmatch(r"6\d\.\d % lost all the time, up to \d\d packets in a row", losses_in_words(irregular))


def at_overload(flows: Sequence[FlowLosses], lost_at: dict[str, int], *, limited: bool = False) -> LossesAtLoad:
    note = "generator offered 5 of 10 packets, 50.00% short" if limited else None
    result = finished(loss_trial(1e5, 1.0, FRAME), losses=tuple(flows), generator_limited=limited, note=note)
    return losses_of("OVERLOAD", result, lost_at, "generator")


def test_losses_that_may_not_be_the_systems_are_remarked_on() -> None:
    flow = told(range(900), 1000, 100_000)
    assert not at_overload([flow], {"nf-1-1": 97, "generator": 3}).remarks
    assert at_overload([flow], {"nf-1-1": 90, "generator": 10}).remarks == (
        "10 of 100 lost packets were dropped at the generator's own ports",
    )
    assert not at_overload([flow], {"nf-1-1": 90, "generator": 100}).lost_at
    assert at_overload([flow], {}, limited=True).remarks == ("generator offered 5 of 10 packets, 50.00% short",)


def test_the_worst_flow_lost_most_or_else_reordered_most() -> None:
    lossy, quiet = told(range(900), 1000, 100_000), told(range(1000), 1000, 100_000)
    swapped = told([number ^ 1 for number in range(1000)], 1000, 100_000)
    assert worst_flow(at_overload([quiet, lossy, swapped], {})) == lossy
    assert worst_flow(at_overload([quiet, swapped], {})) == swapped
    assert rank(lossy) > rank(swapped) > rank(quiet)
