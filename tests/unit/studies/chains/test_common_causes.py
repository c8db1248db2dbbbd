"""What chains with the same excess have in common: planted sets of chains are described, and no others."""

from collections.abc import Callable, Collection
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.model.measurements.features import CHAIN, VSWITCH
from resources.libraries.python.studies.chains.analysis.causes import causes
from resources.libraries.python.studies.chains.analysis.prediction import Judged
from resources.libraries.python.studies.chains.analysis.sentences import cause_in_words, judgement
from resources.libraries.python.studies.chains.model.record import CommonCause, Excess
from resources.libraries.python.studies.chains.model.spec import Chain
from tests.unit.studies.chains.chain_runs import chain, run, workload

PAIRS = tuple(chain(*order) for order in permutations(("fw", "gw", "nat", "ids"), 2))
ORDERS = tuple(chain(*order) for order in permutations(("fw", "gw", "nat", "ids")))
AMOUNT = 0.02
NAT_GW, GW_NAT = chain("nat", "gw"), chain("gw", "nat")


def excess(what: Chain, owner: str, feature: str = "loss_ratio", amount: float = AMOUNT) -> Excess:
    return Excess(
        chain=what, owner=owner, workload=workload(1e8), feature=feature, measured=amount, expected=0.0,
        excess=amount, low=0.9 * amount, high=1.1 * amount, least=0.001, runs=2,
    )  # fmt: skip


def explained(bad: Collection[Chain], owner: str, population: Collection[Chain] = PAIRS) -> tuple[CommonCause, ...]:
    compared = {each: 20.0 if each in bad else 0.0 for each in population if owner in {CHAIN, VSWITCH, *each.order}}
    worse = tuple(excess(each, owner) for each in population if each in bad)
    return causes(Judged(worse, {(owner, "loss_ratio"): compared}, (), 1, True), [run(PAIRS[0], 1e8, 1e8)])


def follows(first: str, then: str) -> Callable[[Chain], bool]:
    return lambda each: first in each.order and then in each.order and each.order.index(first) < each.order.index(then)


def of(*lengths: int) -> tuple[Chain, ...]:
    """Chains of so many of five VNFs."""
    return tuple(chain(*each) for size in lengths for each in permutations(("fw", "gw", "nat", "ids", "dpi"), size))


@pytest.mark.parametrize(
    ("population", "is_bad", "owner", "what"),
    [
        (PAIRS, lambda each: "nat" in each.order, "nat", "every chain with nat"),
        (PAIRS, lambda each: "nat" in each.order, CHAIN, "every chain with nat"),
        (PAIRS, lambda _: True, CHAIN, "every chain"),
        (PAIRS, lambda each: each.order[-1] == "nat", "nat", "every chain with nat in position 2"),
        (PAIRS, lambda each: each == NAT_GW, "nat", "only nat > gw"),
        ((NAT_GW, GW_NAT), lambda each: each == NAT_GW, "nat", "only nat > gw"),
        ((NAT_GW, GW_NAT), lambda _: True, "nat", "every chain with nat"),
        (ORDERS, follows("gw", "nat"), "nat", "every chain in which nat comes after gw"),
        # Of 200 chains hundreds of descriptions fit, whose sets of three take hours to try.
        (of(2, 3, 4, 5), lambda _: True, VSWITCH, "every chain"),
    ],
)
def test_what_bad_chains_share(
    population: Collection[Chain], is_bad: Callable[[Chain], bool], owner: str, what: str
) -> None:
    bad = {each for each in population if is_bad(each)}
    (cause,) = explained(bad, owner, population)
    assert (cause.what, set(cause.chains)) == (what, bad)
    assert cause.excess == pytest.approx(AMOUNT)


def test_what_is_no_chance_is_said_with_the_number_of_chains() -> None:
    (cause,) = explained([each for each in ORDERS if follows("gw", "nat")(each)], "nat", ORDERS)
    assert cause.others == 12 and cause.chance is not None and cause.chance < 1e-4
    assert cause_in_words(cause) == (
        "every chain in which nat comes after gw loses 2 % of the packets in nat (12 chains, none of the other 12)"
    )
    (alone,) = explained([NAT_GW], "nat")
    assert alone.chance is None


def test_delays_of_two_chains_that_differ_are_two_causes() -> None:
    both = (NAT_GW, GW_NAT)
    worse = tuple(excess(each, CHAIN, "idle_latency_s", s) for each, s in zip(both, (118e-6, 55e-6), strict=True))
    found = causes(Judged(worse, {(CHAIN, "idle_latency_s"): dict.fromkeys(both, 9.0)}, (), 2, True), [])
    assert {each.what for each in found} == {"only nat > gw", "only gw > nat"}


def test_descriptions_of_the_same_chains_are_all_named() -> None:
    (cause,) = explained([each for each in PAIRS if each.order[-1] == "nat"], "nat")
    assert cause.same == ("ending with nat",)
    assert "cannot tell them apart from those ending with nat" in cause_in_words(cause)


def test_a_description_that_fits_by_chance_is_marked() -> None:
    some = [chain("fw", "nat"), chain("gw", "nat"), chain("nat", "gw")]
    (cause,) = explained(some[:2], "nat", some)
    assert cause.chance == pytest.approx(2 / 3)
    assert "it may be chance: 66.7 % of all choices of 2 of these chains" in cause_in_words(cause)


def test_two_causes_at_one_part_are_told_apart() -> None:
    bad = [each for each in ORDERS if each.order[0] == "nat" or each.order[-1] == "nat"]
    found = explained(bad, "nat", ORDERS)
    assert {each.what for each in found} == {"every chain with nat in position 1", "every chain with nat in position 4"}


def test_a_longer_delay_of_one_chain_is_a_cause_of_its_own() -> None:
    with_nat = [each for each in PAIRS if "nat" in each.order]
    worse = tuple(excess(each, CHAIN, "idle_latency_s", 90e-6 if each == NAT_GW else 30e-6) for each in with_nat)
    compared = {each: 20.0 if each in with_nat else 0.0 for each in PAIRS}
    judged = Judged(worse, {(CHAIN, "idle_latency_s"): compared}, (), 1, True)
    worse_ones = tuple(each.model_copy(update={"least": 1e-6}) for each in worse)
    found = causes(judged._replace(worse=worse_ones), [])
    assert {each.what: each.excess for each in found} == {
        "every chain with nat": pytest.approx(30e-6),
        "only nat > gw": pytest.approx(60e-6),
    }


def test_throttled_time_explains_what_follows_from_it() -> None:
    what = NAT_GW
    worse = (
        excess(what, CHAIN, "throughput_bps"), excess(what, CHAIN), excess(what, "nat"),
        excess(what, CHAIN, "latency_s"), excess(what, "nat", "throttled_percent", 60.0),
    )  # fmt: skip
    compared = {(each.owner, each.feature): dict.fromkeys(PAIRS, 0.0) | {what: 9.0} for each in worse}
    (cause,) = causes(Judged(worse, compared, (), 5, True), [])
    assert (cause.owner, cause.feature) == ("nat", "throttled_percent")


@given(st.sets(st.sampled_from(PAIRS)), st.sampled_from([CHAIN, "nat", "gw"]))
def test_descriptions_cover_all_bad_chains_and_no_other(bad: set[Chain], owner: str) -> None:
    own = {each for each in bad if owner in {CHAIN, VSWITCH, *each.order}}
    found = explained(own, owner)
    assert {each for cause in found for each in cause.chains} == own
    for cause in found:
        assert cause.what.startswith("only ") == (len(cause.chains) == 1)


def test_the_error_of_single_runs_is_not_stated() -> None:
    """Its spread is unknown where nothing was repeated."""
    at = NAT_GW
    for repeated in (True, False):
        judged = Judged((excess(at, "nat"),), {}, (), 1, repeated)
        (words,) = judgement(judged, [at, at, at], has_path=True)
        assert ("false alarms in at most" in words) is repeated
