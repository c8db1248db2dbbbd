"""A chain from its parts: the hungriest VNF, the sum of delays, branches, shared CPUs, and the range it holds for."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.studies.sweep.analysis.chain_prediction import (
    WITHOUT_PATH,
    MeasuredPath,
    MeasuredVnf,
    Model,
    errors,
    predict,
    predict_rates,
    sharing,
    trust,
)
from resources.libraries.python.studies.sweep.analysis.points import observe
from resources.libraries.python.studies.sweep.analysis.sentences import errors_in_words, trust_in_words
from resources.libraries.python.studies.sweep.model.profile import PredictedPoint, Prediction, Profile, ProfileMetric
from resources.libraries.python.studies.sweep.model.record import Vnf
from tests.unit.studies.sweep.known_profiles import known_profile
from tests.unit.studies.sweep.synthetic_sweeps import growing_to, plain_router, sweep_of

PATH = MeasuredPath("path", (0.5, 1.5, 2.5), (0.1, 0.2, 0.4))
ROUTER = known_profile("router", 2.5, delay_ms=0.3)
FIREWALL = known_profile("firewall", 1.5, delay_ms=0.8, saturated_ms=200.0)
BOTH = [MeasuredVnf(ROUTER), MeasuredVnf(FIREWALL)]
BRANCHES = [MeasuredVnf(ROUTER), MeasuredVnf(FIREWALL, 0.5), MeasuredVnf(FIREWALL, 0.5)]


def at(parts: list[MeasuredVnf], rate: float, model: Model = "hungriest") -> dict[ProfileMetric, float]:
    return predict_rates("chain", parts, [rate], model).points[0].predicted


@pytest.mark.parametrize("parts", [BOTH, BOTH[::-1]])
@pytest.mark.parametrize("model", ["hungriest", "shared_cpus"])
def test_throughput_and_loss_are_those_of_the_hungriest_and_delays_add_up(
    parts: list[MeasuredVnf], model: Model
) -> None:
    """In any order, by either model as nothing is shared."""
    assert at(parts, 1.0, model) == pytest.approx(
        {ProfileMetric.THROUGHPUT: 1.0, ProfileMetric.DELAY: 1.1, ProfileMetric.LOSS: 0.0}
    )
    assert at(parts, 2.0, model) == pytest.approx(
        {ProfileMetric.THROUGHPUT: 1.5, ProfileMetric.DELAY: 0.3 + 202.0, ProfileMetric.LOSS: 25.0}
    )


@pytest.mark.parametrize(
    ("parts", "rate", "path", "delay_ms"),
    [
        (BOTH, 1.0, PATH, 0.15 + (0.3 - 0.15) + (0.8 - 0.15)),
        (BRANCHES, 2.0, PATH, 0.3 + (0.3 - 0.3) + (0.8 - 0.15)),
        (BOTH[:1], 1.0, MeasuredPath("long", (1.0,), (5.0,)), 5.0),
    ],
    ids=["once", "at the rate of a branch", "no VNF takes less than no time"],
)
def test_the_path_around_every_vnf_is_taken_off(
    parts: list[MeasuredVnf], rate: float, path: MeasuredPath, delay_ms: float
) -> None:
    found = predict_rates("chain", parts, [rate], "hungriest", path)
    assert found.points[0].predicted[ProfileMetric.DELAY] == pytest.approx(delay_ms)
    assert found.points[0].summed_delay == pytest.approx(at(parts, rate)[ProfileMetric.DELAY])
    assert (found.path, found.notes) == (path.name, ())


def test_without_a_path_the_plain_sum_remains_and_is_called_so() -> None:
    found = predict_rates("chain", BOTH, [1.0], "hungriest")
    assert found.points[0].predicted[ProfileMetric.DELAY] == pytest.approx(1.1)
    assert (found.points[0].summed_delay, found.path, found.notes) == (None, None, (WITHOUT_PATH,))
    assert '"path":' not in found.model_dump_json()


def test_a_path_has_the_loads_of_its_sweep_that_have_a_delay_and_is_beyond_them_as_there() -> None:
    delays = {ProfileMetric.DELAY: lambda r: 0.1 * r}
    first, second, third = sweep_of(np.linspace(1, 2, 3), {**plain_router(3.0), **delays}, {})
    unknown = second.model_copy(update={"delay_s": None})
    path = MeasuredPath.of("path", [third, unknown, first])
    assert (path.rates, path.delays) == (pytest.approx((1.0, 2.0)), pytest.approx((0.1, 0.2)))
    assert [path.delay_ms(rate) for rate in (0.1, 1.5, 9.0)] == pytest.approx([0.1, 0.15, 0.2])
    assert MeasuredPath.of("path", [unknown]) is None
    ((lossless,), _) = observe([first.model_copy(update={"loss_ratio": None})])
    assert lossless.values[ProfileMetric.LOSS] is None


def test_both_errors_of_the_delay_are_reported() -> None:
    delays = {ProfileMetric.DELAY: lambda r: 0.95 + 0.0 * r}
    points = sweep_of(np.linspace(0.5, 1.4, 10), {**plain_router(1.5), **delays}, {"firewall": (growing_to(1, 1.5),)})
    found = predict("chain", BOTH, points, "hungriest", MeasuredPath("path", (1.0, 2.0), (0.2, 0.2)))
    assert found.errors[ProfileMetric.DELAY] == pytest.approx(0.05 / 0.95, abs=1e-6)
    assert found.summed_delay_error == pytest.approx(0.15 / 0.95, abs=1e-6)
    (line,) = errors_in_words(found)
    other = found.model_copy(update={"chain": "other"})
    assert errors_in_words([found, other]) == (line, line.replace("chain from", "other from", 1))
    assert "delay 5.3 %" in line
    assert "sum of delays without subtracting path 16 %; valid: " in line


def test_two_branches_double_what_the_firewalls_carry() -> None:
    branches = [*BRANCHES, MeasuredVnf(ROUTER)]
    assert at(branches, 2.0) == pytest.approx(
        {ProfileMetric.THROUGHPUT: 2.0, ProfileMetric.LOSS: 0.0, ProfileMetric.DELAY: 0.3 + 0.8 + 0.3}
    )
    assert at(branches, 3.0)[ProfileMetric.THROUGHPUT] == pytest.approx(2.5)


def test_vnfs_that_share_a_cpu_add_up_their_time_per_packet() -> None:
    parts = [MeasuredVnf(ROUTER, cpus="one"), MeasuredVnf(FIREWALL, cpus="one")]
    together = 1 / (1 / 2.5 + 1 / 1.5)
    above = at(parts, 1.2, "shared_cpus")
    assert above[ProfileMetric.THROUGHPUT] == pytest.approx(together)
    assert above[ProfileMetric.LOSS] == pytest.approx(100 * (1 - together / 1.2))
    assert at(parts, 0.9, "shared_cpus")[ProfileMetric.LOSS] == 0.0
    assert at(parts, 1.2)[ProfileMetric.LOSS] == 0.0


def test_what_else_runs_on_shared_cpus_counts_once() -> None:
    """Measured with the vSwitch on the CPU of the VNFs: both alone, and 0.065 to 0.075 Gbit/s through both in a row."""
    parts = [
        MeasuredVnf(known_profile("router", 0.115, used=0.275), cpus="x"),
        MeasuredVnf(known_profile("firewall", 0.0788, used=0.36), cpus="x"),
    ]
    through = at(parts, 0.2, "shared_cpus")[ProfileMetric.THROUGHPUT]
    assert through == pytest.approx(1 / (0.275 / 0.115 + 0.36 / 0.0788 + 0.64 / 0.0788))
    assert 0.065 < through < 0.075


def test_a_vnf_that_never_saturated_is_never_the_hungriest() -> None:
    endless = [MeasuredVnf(known_profile("endless", None)), MeasuredVnf(FIREWALL)]
    assert at(endless, 2.0)[ProfileMetric.THROUGHPUT] == pytest.approx(1.5)


AT_ITS_LOWEST_LOAD = FIREWALL.model_copy(
    update={"break_point": FIREWALL.break_point.model_copy(update={"high": FIREWALL.break_point.rate})}
)


@pytest.mark.parametrize(
    ("part", "rates", "note"),
    [
        (known_profile("endless", None), [2.0], "endless: where it or a VNF on its CPUs saturates is not known"),
        (ROUTER, [1.0, 5.0], "at 1 of 2 rates a VNF was not measured alone"),
        (ROUTER, [1.0, 3.0], "at 1 of 2 rates the path path was not measured: its delay is as at its last"),
        (AT_ITS_LOWEST_LOAD, [1.0], "or below"),
    ],
)
def test_what_a_prediction_only_assumes_is_noted(part: Profile, rates: list[float], note: str) -> None:
    found = predict_rates("chain", [MeasuredVnf(part)], rates, "hungriest", PATH)
    assert [each for each in found.notes if note in each]


def test_a_prediction_is_compared_with_the_measured_chain() -> None:
    rates = np.linspace(0.1, 3.0, 30)
    functions = {**plain_router(1.5), ProfileMetric.DELAY: lambda r: np.where(r < 1.5, 2.2, 2 * (200.3 + r))}
    points = sweep_of(rates, functions, {"firewall": (growing_to(1, 1.5),)})
    found = predict("chain", BOTH, points, "hungriest")
    assert len(found.points) == 30
    assert found.errors == pytest.approx(
        {ProfileMetric.THROUGHPUT: 0.0, ProfileMetric.DELAY: 0.5, ProfileMetric.LOSS: 0.0}, abs=0.02
    )
    line, note = errors_in_words(found)
    assert note == WITHOUT_PATH
    assert (
        line.startswith("chain from router + firewall (by the bottleneck VNF): ") and "throughput 0 %, delay " in line
    )


def test_errors_leave_out_what_cannot_be_compared() -> None:
    points = [
        PredictedPoint(
            rate=1, predicted={ProfileMetric.DELAY: 2.0, ProfileMetric.LOSS: 3.0}, measured={ProfileMetric.LOSS: 1.0}
        ),
        PredictedPoint(rate=2, predicted={ProfileMetric.THROUGHPUT: 1.0}, measured={ProfileMetric.THROUGHPUT: 0.0}),
    ]
    assert errors(points) == {ProfileMetric.LOSS: 2.0}


def test_a_chain_has_a_vnf() -> None:
    with pytest.raises(ValueError, match="at least one VNF"):
        predict_rates("chain", [], [1.0], "hungriest")


def test_vnfs_share_cpus_also_by_way_of_others() -> None:
    def vnf(name: str, *others: str) -> Vnf:
        return Vnf(name=name, kind=NfKind("linux_router"), vcpus=1, shares_cpus_with=others)

    words = sharing([vnf("a", "b", "vswitch"), vnf("b", "a", "c"), vnf("c", "b"), vnf("d", "vswitch"), vnf("e")])
    assert words["a"] == words["b"] == words["c"] is not None
    assert words["d"] is None
    assert words["e"] is None


shares = st.sampled_from([0.25, 0.5, 1.0])


@given(
    st.lists(st.tuples(st.floats(0.3, 3.9), shares), min_size=1, max_size=5),
    st.lists(st.floats(0.05, 3.9), min_size=2, max_size=6),
    st.sampled_from(["hungriest", "shared_cpus"]),
)
def test_more_load_never_lowers_what_is_lost_or_what_gets_through(
    vnfs: list[tuple[float, float]], rates: list[float], model: Model
) -> None:
    parts = [
        MeasuredVnf(known_profile(f"v{index}", capacity), share, "x") for index, (capacity, share) in enumerate(vnfs)
    ]
    points = predict_rates("chain", parts, sorted(rates), model).points
    for metric in (ProfileMetric.THROUGHPUT, ProfileMetric.LOSS):
        values = [point.predicted[metric] for point in points]
        assert all(one <= other + 1e-9 for one, other in pairwise(values))


@given(st.lists(st.floats(0.3, 3.9), min_size=1, max_size=5), st.floats(0.05, 3.9))
def test_sharing_cpus_never_lets_more_through(capacities: list[float], rate: float) -> None:
    parts = [MeasuredVnf(known_profile(f"v{index}", capacity), cpus="x") for index, capacity in enumerate(capacities)]
    assert at(parts, rate, "shared_cpus")[ProfileMetric.THROUGHPUT] <= at(parts, rate)[ProfileMetric.THROUGHPUT] + 1e-9


def words(rows: Sequence[tuple[float, ProfileMetric, float, float]]) -> list[str]:
    """Of a prediction with these points: rate, metric, predicted, measured."""
    points = tuple(
        PredictedPoint(rate=rate, predicted={metric: predicted}, measured={metric: measured})
        for rate, metric, predicted, measured in rows
    )
    found = Prediction(chain="c", parts=("a",), model="hungriest", points=points, errors={})
    return [f"{each.metric} {trust_in_words(each)}" for each in trust(found)]


def test_trust_ends_at_the_first_load_that_is_wrong_whatever_comes_behind_it() -> None:
    """What was not measured is not judged."""
    delays = [(rate, ProfileMetric.DELAY, predicted, 1.0) for rate, predicted in ((3.0, 1.0), (1.0, 1.2), (2.0, 1.3))]
    assert words(delays) == ["delay within 25 % up to 1 Gbit/s"]
    assert words([]) == []


@pytest.mark.parametrize(
    ("metric", "right", "wrong", "measured"),
    [
        (ProfileMetric.THROUGHPUT, 1.09, 1.11, 1.0),
        (ProfileMetric.THROUGHPUT, 0.91, 0.89, 1.0),
        (ProfileMetric.DELAY, 1.24, 1.26, 1.0),
        (ProfileMetric.LOSS, 4.9, 5.1, 0.0),
        (ProfileMetric.LOSS, 34.9, 35.1, 30.0),
    ],
)
def test_a_prediction_is_right_within_10_percent_25_of_delay_and_5_points_of_loss(
    metric: ProfileMetric, right: float, wrong: float, measured: float
) -> None:
    assert words([(1.0, metric, right, measured)])[0].endswith("at all rates")
    assert words([(1.0, metric, wrong, measured)])[0].endswith("at no rate")
