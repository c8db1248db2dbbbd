"""How many instances fit: by hand, and that a looser bound never gives a smaller answer."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from csit_utils.analysis.causes import CauseKind, kind_of
from csit_utils.dataset import rows as columns
from csit_utils.dataset.measures import Measure
from csit_utils.dataset.rows import InstanceRow, LatencyRow, TestRow
from csit_utils.studies.density.analysis import answers as asked
from csit_utils.studies.density.analysis.answers import AnswerEvidence, AnswerVerdict, answers, evidence
from csit_utils.studies.density.answer_text import evidence_text, next_text, view
from tests.loaded import Dataset, rows_of_tests
from tests.unit.csit_utils import histories
from tests.unit.csit_utils.builders import CSC, CSP, PDR, does_not_fit, goal_result, refused_cell, result, trial
from tests.unit.csit_utils.datasets import dataset_of, invoked
from tests.unit.csit_utils.robot_output import write_output_xml
from tests.unit.examples import share


def row(services: int, nfs: int = 1, pdr: float | None = None, **changes: Any) -> TestRow:
    """A test of a cell; without a rate it has no lower bound."""
    anchor = f"t-{services}-{nfs}-{changes.get('test_type', 'NDRPDR')}"
    usual: dict[str, Any] = {
        "anchor": anchor, "status": "PASS", "message": "", "verdicts": "measured", "source": "output.xml",
    }  # fmt: skip
    usual |= {f"ndr_{name}": None for name in ("loss_ratio", "lower_pps", "upper_pps", "complete")}
    usual |= {"pdr_complete": True, "pdr_loss_ratio": None if pdr is None else 0.005}
    return histories.row(pdr, cell=("CSC", services, nfs), **{**usual, **changes})


def flows(test: TestRow, rates: Sequence[tuple[float, float]], metric: str = "PDR") -> list[InstanceRow]:
    """Forwarded rates of each instance, forward and reverse, of equal shares of the load at the lower bound."""
    load = test.pdr_lower_pps or 0.0
    offered, found = load / (2 * len(rates)), []
    for number, pair in enumerate(rates, 1):
        for way, rate in zip(("forward", "reverse"), pair, strict=True):
            lost = max(0.0, 1 - rate / offered) if offered else 0.0
            place = (test.anchor, "", metric, load, 1, number, way)
            found.append(InstanceRow(*place, 1, 1, offered, rate, lost, False, None, ""))
    return found


def latency(test: TestRow, *loads: tuple[float, Sequence[float | None]], lost: int = 0) -> list[LatencyRow]:
    """A load, and the p99 in microseconds of every flow."""
    found = []
    for load, all_us in loads:
        for number, us in enumerate(all_us, 1):
            place = (test.anchor, "", f"L{load:g}", load, number, "forward", 1000, 1000 - lost)
            found.append(LatencyRow(*place, 1, 1.0, 1, 1, None if us is None else int(us * 1000), 1, 1, None))
    return found


def ask(
    seen: AnswerEvidence, rate: float, p99_us: float | None = None, metric: Measure = columns.PDR
) -> asked.DensityAnswer:
    (found,) = answers(asked.Question(rate, None if p99_us is None else p99_us * 1000, metric), seen)
    return found


def ladder() -> AnswerEvidence:
    """1, 2 and 4 services: 1000, 900 and 800 pps; 8 do not fit."""
    tests = [row(1, pdr=1000.0), row(2, pdr=900.0), row(4, pdr=800.0)]
    instances = [
        *flows(tests[0], [(500, 500)]),
        *flows(tests[1], [(225, 225), (225, 220)]),
        *flows(tests[2], [(100, 100), (100, 100), (100, 60), (100, 100)]),
    ]
    latencies = [
        *latency(tests[0], (0, [5]), (500, [10]), (900, [40])),
        *latency(tests[1], (0, [5, 5]), (450, [12, 20]), (810, [50, 70])),
        *latency(tests[2], (0, [5] * 4), (400, [30] * 4), (720, [90] * 4)),
    ]
    return evidence(tests, [*instances, *latencies], [refused_cell(8, 1, "needs 33 cores")])


@pytest.mark.parametrize(
    ("rate", "p99_us", "fits", "limit", "at"),
    [
        (120, None, 4, AnswerVerdict.DOES_NOT_FIT, 8),
        # The worst of four gets 60 in one direction, 120 in both, the mean 200: it loses too much at 800 pps.
        (120.1, None, 2, AnswerVerdict.RATE_UNKNOWN, 4),
        (200, None, 2, AnswerVerdict.RATE, 4),
        (440, None, 2, AnswerVerdict.RATE, 4),
        (441, None, 1, AnswerVerdict.RATE_UNKNOWN, 2),  # 882 pps asked, one instance loses too much at 900
        (450, None, 1, AnswerVerdict.RATE, 2),
        (1000, None, 1, AnswerVerdict.RATE, 2),
        (1001, None, 0, AnswerVerdict.RATE_UNKNOWN, 1),  # between the bounds of the search, 1000 and 1005
        (1005, None, 0, AnswerVerdict.RATE, 1),
        (100, 31, 4, AnswerVerdict.DOES_NOT_FIT, 8),  # 400 pps asked, measured at 400
        (100, 30, 2, AnswerVerdict.LATENCY, 4),  # below 30 is not 30
        (100, 5, 0, AnswerVerdict.LATENCY, 1),  # without load it is 5
        (101, 31, 2, AnswerVerdict.LATENCY_UNKNOWN, 4),  # 404 pps asked: met at 400, missed at 720
        (181, 31, 2, AnswerVerdict.LATENCY, 4),  # 724 pps: late at 720 already, whatever is lost
        (120, 91, 4, AnswerVerdict.DOES_NOT_FIT, 8),
        (226, 21, 1, AnswerVerdict.LATENCY_UNKNOWN, 2),  # 452 pps asked: met at 450, missed at 810
        (405, 21, 1, AnswerVerdict.LATENCY, 2),
        (226, 71, 2, AnswerVerdict.RATE, 4),
        (410, 1000, 1, AnswerVerdict.LATENCY_UNKNOWN, 2),  # 820 pps asked: beyond the highest load with latency
    ],
)
def test_by_hand(rate: float, p99_us: float | None, fits: int, limit: AnswerVerdict, at: int) -> None:
    found = ask(ladder(), rate, p99_us)
    assert (found.services, found.next.verdict, found.next.services) == (fits, limit, at)


def test_the_evidence_names_test_instance_and_load() -> None:
    found = ask(ladder(), 200, 21)
    for said in ("2x1", "440 pps (instance 2 reverse)", "PDR load 900 pps", "p99 20.0 µs at L450"):
        assert said in evidence_text(found)
    for said in ("4x1: rate too low", "120 pps (instance 3 reverse)", "not met at 800 pps", "3 not measured"):
        assert said in next_text(found)
    assert "8x1 does not fit: needs 33 cores" in next_text(ask(ladder(), 100))
    assert view(ask(ladder(), 5000)).cells[5] == "none"


ONE, TWO, WORSE = row(1, pdr=900.0), row(2, pdr=900.0), row(2, pdr=700.0, anchor="again")
TWICE = [*latency(TWO, (800, [10])), *latency(WORSE, (800, [99]))]


@pytest.mark.parametrize(
    ("tests", "latencies", "rate", "p99_us", "services"),
    [
        pytest.param([TWO], [], 450, None, 2, id="without counts by instance the mean counts"),
        pytest.param([TWO], [], 451, None, 0, id="which is not enough here"),
        pytest.param([TWO, WORSE], [], 400, None, 0, id="of several runs the one that keeps least decides"),
        pytest.param([TWO, WORSE], [], 350, None, 2, id="which keeps this rate"),
        pytest.param([TWO, WORSE], TWICE, 350, 50, 0, id="the latest one of several decides"),
        pytest.param([TWO, WORSE], TWICE, 350, 100, 2, id="which keeps this bound"),
        pytest.param([ONE], latency(ONE, (450, [80]), (810, [20])), 100, 50, 1, id="any load that is high enough"),
        pytest.param([ONE], latency(ONE, (450, [80]), (810, [20])), 800, 50, 1, id="its own load"),
        pytest.param([ONE], latency(ONE, (800, [10]), lost=10), 100, 50, 1, id="lost probes beyond the percentile"),
        pytest.param([ONE], latency(ONE, (800, [10]), lost=11), 100, 50, 0, id="a lost probe is too late"),
        pytest.param([ONE], latency(ONE, (800, [10, None])), 100, 50, 0, id="a flow without a latency is too late"),
    ],
)
def test_services_of_small_evidence(
    tests: list[TestRow], latencies: list[LatencyRow], rate: float, p99_us: float | None, services: int
) -> None:
    assert ask(evidence(tests, latencies), rate, p99_us).services == services


OF_NDR = {"ndr_lower_pps": 500.0, "ndr_upper_pps": 502.0, "ndr_complete": True}
TOO_HIGH: dict[str, Any] = {"ndr_lower_pps": None, "ndr_upper_pps": 29.0, "ndr_complete": True}


@pytest.mark.parametrize(
    ("test", "rate", "metric", "verdict"),
    [
        (row(1, pdr=900.0, **OF_NDR), 600, columns.PDR, AnswerVerdict.KEPT),
        (row(1, pdr=900.0, **OF_NDR), 600, columns.NDR, AnswerVerdict.RATE),
        pytest.param(row(1, status="PASS", **OF_NDR), 500, columns.PDR, AnswerVerdict.KEPT, id="NDR meets PDR"),
        pytest.param(row(1, **OF_NDR), 510, columns.PDR, AnswerVerdict.RATE_UNKNOWN, id="PDR may be above NDR"),
        pytest.param(row(1, pdr=900.0), 910, columns.NDR, AnswerVerdict.RATE, id="what misses PDR misses NDR"),
        pytest.param(row(1, pdr=900.0), 800, columns.NDR, AnswerVerdict.RATE_UNKNOWN, id="NDR may be below PDR"),
        pytest.param(row(1, **TOO_HIGH), 30, columns.NDR, AnswerVerdict.RATE, id="no load was low enough"),
        pytest.param(row(1, **TOO_HIGH), 28, columns.NDR, AnswerVerdict.RATE_UNKNOWN, id="a lower one may be"),
    ],
)
def test_a_goal_is_judged_by_the_figures_that_a_test_has(
    test: TestRow, rate: float, metric: Measure, verdict: AnswerVerdict
) -> None:
    found = ask(evidence([test], []), rate, metric=metric)
    assert (found.best or found.next).verdict is verdict
    text = " ".join(view(found).cells)
    assert ("NDR load 500 pps" in text) is (verdict is AnswerVerdict.KEPT and test.pdr_lower_pps is None)
    assert "worst instance 0" not in text


def test_what_was_not_measured_failed_or_is_a_hole_limits_the_answer_and_simulated_ones_are_apart() -> None:
    found = ask(evidence([TWO], []), 1)
    assert (found.services, found.next.verdict, found.next.services) == (2, AnswerVerdict.NOT_MEASURED, 3)
    assert next_text(found) == "3x1 was not measured"
    found = ask(evidence([ONE, row(2, pdr=900.0, status="FAIL", message="nf-2-1 is down")], []), 100)
    assert (found.services, found.next.verdict) == (1, AnswerVerdict.NO_RESULT)
    assert next_text(found) == "2x1 has no result: nf-2-1 is down"
    only_mrr = row(2, status="PASS", mrr_pps=900.0, test_type="MRR")
    assert next_text(ask(evidence([ONE, only_mrr], []), 100)) == "2x1 has no result: no test searched for PDR"
    found = ask(evidence([ONE, row(2, pdr=300.0), row(4, pdr=4000.0)], []), 400)
    assert (found.services, [each.services for each in found.doubts]) == (4, [2])
    assert "but 2x1: rate too low" in view(found).cells[6]
    tests = [ONE, row(4, pdr=9000.0, simulated=True, world="sim", testbed="sim", source="sim.xml")]
    both = answers(asked.Question(100.0), evidence(tests, []))
    assert [(each.series.system.simulated, each.services) for each in both] == [(False, 1), (True, 4)]
    assert view(both[1]).marks == ("SIMULATED",)


def test_latency_may_come_from_another_test_of_the_cell_and_the_rate_is_answered_without_one() -> None:
    other = row(2, pdr=880.0, test_type="LATENCY")
    seen = evidence([TWO, other], latency(other, (440, [20])))
    found = ask(seen, 220, 21)
    assert (found.services, found.best.run.row, found.best.timed) == (2, TWO, other)
    assert ask(seen, 450).services == 2, "its own PDR, found with less evidence, does not count beside a real one"
    found = ask(evidence([row(2, pdr=990.0, anchor="fast"), TWO], []), 400, 50)
    assert (found.services, found.next.verdict, found.next.point) == (0, AnswerVerdict.LATENCY_UNKNOWN, None)
    assert found.next.run.row == TWO


def sextet(*points: tuple[float, Sequence[float | None]], **changes: Any) -> AnswerEvidence:
    """Six services with a PDR of 3.1 Mpps and latency at loads."""
    test = row(6, pdr=3.1e6, **changes)
    return evidence([test], latency(test, *points))


def decided(seen: AnswerEvidence, load: float, *, sustained: bool | None, p99_us: float) -> AnswerEvidence:
    """The same with trials at a load."""
    test = row(6, anchor="at-rate", test_type="LATENCY", rate_load_pps=load, rate_pdr_sustained=sustained)
    flow = InstanceRow("at-rate", "", "RATE", load, 9, 1, "forward", 1, 1, load / 12, load / 12, 0, False, None, "")
    own = [each for rows in seen.latencies.values() for each in rows]
    return evidence([*seen.rows, test], [flow, *own, *latency(test, (load, [p99_us]))])


MEASURED = ((0.31e6, [20]), (1.55e6, [42]), (2.79e6, [120]))

NO_UPPER_BOUND = sextet((3.2e6, [20]), pdr_upper_pps=None)


@pytest.mark.parametrize(
    ("seen", "rate", "verdict", "trial_pps"),
    [
        # A load that was never measured is not called too slow.
        (sextet(*MEASURED), 360e3, AnswerVerdict.LATENCY_UNKNOWN, 2.16e6),
        # A bound that is missed at a lower load is missed.
        (sextet((0.31e6, [20]), (1.55e6, [90]), (2.79e6, [120])), 360e3, AnswerVerdict.LATENCY, None),
        # One that is met at a higher load is met; noise below a load that met it does not decide above it.
        (sextet((0.31e6, [95]), (1.55e6, [42]), (2.79e6, [60])), 360e3, AnswerVerdict.KEPT, None),
        (sextet((0.31e6, [95]), (1.55e6, [42])), 360e3, AnswerVerdict.LATENCY_UNKNOWN, 2.16e6),
        # Without an upper bound a higher rate is not too high.
        (NO_UPPER_BOUND, 520e3, AnswerVerdict.RATE_UNKNOWN, 3.12e6),
        # Trials at the rate decide; those that decide nothing are not offered again. PDR is met at 3.1 Mpps already.
        (decided(sextet(*MEASURED), 2.16e6, sustained=True, p99_us=79), 360e3, AnswerVerdict.KEPT, None),
        (decided(sextet(*MEASURED), 2.16e6, sustained=None, p99_us=79), 360e3, AnswerVerdict.KEPT, None),
        (decided(sextet(*MEASURED), 2.16e6, sustained=True, p99_us=80), 360e3, AnswerVerdict.LATENCY, None),
        (decided(sextet(*MEASURED), 2.16e6, sustained=False, p99_us=79), 360e3, AnswerVerdict.RATE, None),
        (decided(NO_UPPER_BOUND, 3.12e6, sustained=None, p99_us=10), 520e3, AnswerVerdict.RATE_UNKNOWN, None),
    ],
)
def test_loads_beside_the_measured_ones(
    seen: AnswerEvidence, rate: float, verdict: AnswerVerdict, trial_pps: float | None
) -> None:
    found = ask(seen, rate, 80)
    assert ((found.best or found.next).verdict, found.trial_pps) == (verdict, trial_pps)
    assert trial_pps is None or f"a trial at {trial_pps / 1e6:.2f} Mpps decides" in next_text(found)


def test_a_latency_that_contradicts_a_higher_load_is_named() -> None:
    found = ask(sextet((0.31e6, [95]), (1.55e6, [42]), (2.79e6, [60])), 360e3, 80)
    assert "p99 95.0 µs at the lower 310 kpps" in " ".join(map(str, view(found).cells))


# Few values, so that bounds and results meet: the interesting cases are those next to each other.
_rates = st.sampled_from([49.0, 50.0, 51.0, 100.0, 200.0, 400.0])
_points = st.lists(
    st.tuples(st.sampled_from([0.0, 100.0, 200.0, 400.0, 800.0]), st.sampled_from([None, 10.0, 20.0, 30.0])), max_size=4
)
_asked_rates = st.sampled_from([50.0, 100.0, 101.0, 200.0, 400.0])
_asked_p99 = st.sampled_from([None, 10.0, 15.0, 20.0, 30.0, 40.0])


@st.composite
def measured(draw: st.DrawFn) -> AnswerEvidence:
    """Any results, however odd: rates that grow with density, several runs, holes, missing counts and latency."""
    tests, instances, latencies = [], [], []
    for number in range(draw(st.integers(1, 6))):
        services = draw(st.sampled_from([1, 2, 4, 6]))
        kind = draw(st.sampled_from(["NDRPDR", "LATENCY", "MRR"]))
        pdr = draw(st.sampled_from([None, 100.0, 400.0, 800.0, 1600.0]))
        test = row(services, pdr=pdr, test_type=kind, anchor=f"t{number}")
        tests.append(test)
        if draw(st.booleans()):
            instances += flows(test, [(draw(_rates), draw(_rates)) for _ in range(services)])
        latencies += latency(test, *((load, [p99] * services) for load, p99 in draw(_points)))
    refused = [refused_cell(8, 1, "no")] if draw(st.booleans()) else []
    return evidence(tests, [*instances, *latencies], refused)


@settings(deadline=None, max_examples=share(200))  # a busy machine is no error
@given(
    seen=measured(),
    rate=_asked_rates,
    p99=_asked_p99,
    slower=st.sampled_from([1.0, 0.5, 0.25, 0.1]),
    later=st.sampled_from([None, 1.0, 1.5, 2.0, 4.0]),
)
def test_a_looser_bound_never_gives_a_smaller_answer(
    seen: AnswerEvidence, rate: float, p99: float | None, slower: float, later: float | None
) -> None:
    strict = ask(seen, rate, p99)
    assert ask(seen, rate * slower, p99).services >= strict.services
    looser = None if p99 is None or later is None else p99 * later
    assert ask(seen, rate, looser).services >= strict.services
    assert ask(seen, rate * slower, looser).services >= strict.services


@settings(deadline=None, max_examples=share(200))  # a busy machine is no error
@given(seen=measured(), rate=_asked_rates, p99=_asked_p99)
def test_an_answer_is_a_number_that_was_measured(seen: AnswerEvidence, rate: float, p99: float | None) -> None:
    found = ask(seen, rate, p99)
    passed = {test.nf_chains for test in seen.rows if test.pdr_lower_pps is not None}
    assert found.services in passed | {0}
    assert found.next.services > found.services
    if found.best is not None and found.best.run is not None:
        assert found.best.run.worst_pps >= rate
        assert found.best.run.row.nf_chains == found.services
        if p99 is not None:
            assert found.best.point.p99_ns < p99 * 1000
            assert found.best.point.load_pps >= rate * found.services


def records() -> Dataset:
    """Two real records: 1 and 4 services; the last of four bears all the loss of PDR."""
    four = result(CSC, 4, 1, pdr=goal_result(PDR, 4e5), trials=(trial(4e5, 4, 0.004),), histograms=False)
    one = result(CSC, 1, 1, pdr=goal_result(PDR, 3e5), trials=(trial(3e5, 1, 0.0),), histograms=False)
    return dataset_of(one, four)


def answered(path: Path, *words: str) -> list[dict[str, Any]]:
    """Objects that the command prints."""
    done = invoked("answer", path, "--rate", "90kpps", "--format", "json", *words)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_command_and_the_best_configuration_of_each_service_type(tmp_path: Path) -> None:
    path = write_output_xml(tmp_path / "output.xml", [each.record for each in records().recorded])
    (found,) = answered(path)
    assert (found["instances"], found["rate_pps"], found["next_limit"]) == (4, 90_000, "not measured")
    assert found["worst_instance_pps"] == pytest.approx(98_400)
    cells = ((CSC, 1, 1), (CSC, 2, 1), (CSC, 2, 2), (CSP, 1, 4))
    results = [result(*cell, histograms=False, pdr=goal_result(PDR, 4e5)) for cell in cells]
    found = answered(write_output_xml(tmp_path / "output.xml", results), "--best")
    best = [(each["service_type"], each["instances"], each["nf_nodes"]) for each in found]
    assert best == [("CSC", 2, 2), ("CSP", 1, 4)]


def test_only_a_cell_that_planning_refused_does_not_fit() -> None:
    """A test may also fail before it is planned, by a testbed that does not answer."""
    unfit = does_not_fit(CSC, 2, 1)
    unreachable = unfit.model_copy(update={"unfit": False, "message": "DUT1: no answer within 30 s"})
    for record, verdict, text in (
        (unfit, AnswerVerdict.DOES_NOT_FIT, "2x1 does not fit: needs 33 cores on NUMA 0, 28 available"),
        (unreachable, AnswerVerdict.NO_RESULT, "2x1 has no result: DUT1: no answer within 30 s"),
    ):
        rows = rows_of_tests(dataset_of(result(CSC, 1, 1), record))
        found = ask(evidence(rows, []), 100)
        assert (found.next.verdict, next_text(found)) == (verdict, text)
        assert kind_of(rows[1]) is (CauseKind.DOES_NOT_FIT if record is unfit else CauseKind.FAILED)
