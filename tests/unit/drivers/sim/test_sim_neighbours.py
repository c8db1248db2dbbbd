"""The truth of simulated neighbours: the figures of Zeng et al., contention that saturates, a guarantee that fits."""

from itertools import combinations_with_replacement
from math import prod
from statistics import fmean
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.driver_registry import functions
from resources.libraries.python.drivers.sim.simulation import Simulation
from resources.libraries.python.drivers.sim.truth import is_guaranteed, left_by
from resources.libraries.python.model.driver import SimulatedNf
from resources.libraries.python.model.plan import NfPlan
from resources.libraries.python.model.request.function import Limits
from resources.libraries.python.model.request.kinds import NfKind

TYPES = {
    "I": NfKind("linux_gateway"),
    "II": NfKind("pktstat"),
    "III": NfKind("suricata"),
    "IV": NfKind("nginx_balancer"),
    "V": NfKind("nginx_proxy"),
}
TABLE_3 = {"I": 0.8764, "II": 0.4969, "III": 0.6407, "IV": 0.6478, "V": 0.6114}
PAIRS = {("I", "III"): 0.8541, ("II", "III"): 0.6153, ("III", "II"): 0.6449}
WITHIN = 0.012
"""Of the paper's figures: 1.2 points."""
LINE_PPS = 1e6
KINDS = st.sampled_from([NfKind(name) for name, each in functions().items() if each.simulated != SimulatedNf()])


def nf(kind: NfKind, limit_pps: float | None = None) -> NfPlan:
    return cast(NfPlan, SimpleNamespace(kind=kind, limits=Limits(network_pps=limit_pps)))


def left(target: str, *others: str) -> float:
    return left_by([nf(TYPES[other]) for other in others], nf(TYPES[target]), Simulation(), LINE_PPS)


def test_rows_and_pairs_are_those_of_the_paper() -> None:
    for target, mean in TABLE_3.items():
        assert fmean(left(target, other) for other in TYPES) == pytest.approx(mean, abs=WITHIN)
    for (target, other), mean in PAIRS.items():
        assert left(target, other) == pytest.approx(mean, abs=WITHIN)


def test_the_monitor_is_most_sensitive_and_types_iv_and_v_are_most_aggressive() -> None:
    rows = {target: fmean(left(target, other) for other in TYPES) for target in TYPES}
    columns = {other: fmean(left(target, other) for target in TYPES) for other in TYPES}
    assert min(rows, key=rows.__getitem__) == "II"
    assert sorted(columns, key=columns.__getitem__)[:2] == ["V", "IV"]
    assert all(left(target, other) < 1 for target in TYPES for other in TYPES), "interference is ubiquitous"


@pytest.mark.parametrize(("size", "apart"), [(2, 0.06), (3, 0.10)])
def test_several_neighbours_are_not_the_product_of_each(size: int, apart: float) -> None:
    """A model of products is then a prediction that can be wrong."""
    off = [
        abs(left(target, *others) - prod(left(target, other) for other in others))
        for target in TYPES
        for others in combinations_with_replacement(TYPES, size)
    ]
    assert fmean(off) > apart


@given(KINDS, st.lists(KINDS, min_size=1, max_size=6), KINDS)
def test_one_more_neighbour_takes_something_and_never_more_than_the_sensitivity(
    target: NfKind, others: list[NfKind], one: NfKind
) -> None:
    before, after = (
        left_by([nf(kind) for kind in row], nf(target), Simulation(), LINE_PPS) for row in (others, [*others, one])
    )
    assert 1 - target.driver.simulated.sensitivity < after < before < 1


@given(KINDS, st.lists(KINDS, min_size=1, max_size=4), st.floats(0, 0.9))
def test_a_guarantee_gives_back_its_part_of_the_loss_in_any_combination(
    target: NfKind, others: list[NfKind], part: float
) -> None:
    simulation = Simulation(network_part=part)
    share_pps = LINE_PPS / (1 + len(others))
    free, held = (
        left_by([nf(kind, pps) for kind in others], nf(target, pps), simulation, LINE_PPS) for pps in (None, share_pps)
    )
    assert (held - free) / (1 - free) == pytest.approx(part)


@pytest.mark.parametrize(
    ("limits", "guaranteed"),
    [
        ((5e5, 5e5), True),
        ((3e5, 3e5, 4e5), True),
        ((5e5, 5e5, 5e5), False),  # shares of two, given to three
        ((5e5, None), False),
        ((None, None), False),
    ],
)
def test_limits_are_a_guarantee_where_all_have_one_and_the_line_carries_them_together(
    limits: tuple[float | None, ...], guaranteed: bool
) -> None:
    assert is_guaranteed([nf(NfKind("pktstat"), each) for each in limits], LINE_PPS) is guaranteed
