"""What may be compared: definitions decide, and every difference is a sentence. The published figures of FD.io."""

from collections import Counter
from dataclasses import replace
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csit_utils.analysis.comparisons.comparability import likeness, resolution_pps, without_bounds
from csit_utils.analysis.comparisons.comparison import Outcome, compare
from csit_utils.analysis.grouping import all_series, series_of
from csit_utils.dataset.goal_words import ONE_WAY, GoalWords, goal_text, mrr_words, profile_text, read_goal
from csit_utils.dataset.measures import Measure
from csit_utils.dataset.reference import FDIO_2019, names, reference_items, title
from csit_utils.dataset.rows import MRR, NDR, OWN, PDR
from csit_utils.studies.density.analysis.density import matrices
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.request.goal import Goal
from resources.libraries.python.search.profiles import LADDER, QUICK, SOAK
from tests.unit.csit_utils.histories import row

OWN_ROW = row(1e6, testbed="t1", frame="IMIX (7x64, 4x570, 1x1518)", goals=profile_text(LADDER))
PEER = replace(
    OWN_ROW,
    origin="nfvbench",
    frame="IMIX (7x64, 4x594, 1x1518)",
    goals="; ".join(GoalWords(name, loss, 0.0, trial_s=60.0).text for name, loss in (("NDR", 1e-5), ("PDR", 0.001))),
)
ROWS = [item.row for item in reference_items(FDIO_2019)]


def test_equal_definitions_are_alike_without_a_word_and_other_trials_are_not() -> None:
    """Two runs of one profile, on whatever testbed, are compared."""
    found = likeness(OWN_ROW, replace(OWN_ROW, testbed="t2"), PDR)
    assert (found.alike, found.remarks) == (True, ())
    assert not likeness(OWN_ROW, replace(OWN_ROW, goals=profile_text(QUICK)), NDR).alike


LESS = LADDER.goals[0].model_copy(update={"relative_width": 0.001, "duration_sum_s": 60.0})


@pytest.mark.parametrize(
    ("changes", "metric", "differences"),
    [
        ({"simulated": True}, MRR, ("A is measured and B is simulated",)),
        (
            {"goals": f"{OWN_ROW.goals}; {ONE_WAY}", "frame": "64B"}, NDR,
            (
                "frames are IMIX (7x64, 4x570, 1x1518) in A and 64B in B",
                "A counts both directions and B one direction",
            ),
        ),
        ({"goals": None}, NDR, ("B does not say what NDR means in it",)),
        (
            vars(PEER), PDR,
            (
                "IMIX is 7:4:1 of 64/570/1518 B in A and 7:4:1 of 64/594/1518 B in B",
                "PDR means loss <= 0.5 % in A and <= 0.1 % in B",
                "a load still counts as PDR when 50 % of its trial time loses more in A, and 0 % in B",
                "PDR is decided by trials of 1 s in A and of 60 s in B",
            ),
        ),
    ],
)  # fmt: skip
def test_every_difference_of_definition_has_its_own_sentence_with_both_values(
    changes: dict[str, Any], metric: Measure, differences: tuple[str, ...]
) -> None:
    assert likeness(OWN_ROW, replace(OWN_ROW, **changes), metric).differences == differences


@pytest.mark.parametrize(
    ("goals", "metric", "remarks"),
    [
        (
            GoalWords("PDR", 0.005, given_as="forwarded rate").text, PDR,
            (
                "B does not report the length of its trials",
                "B does not report its exceed ratio",
                "PDR of B is a forwarded rate, which may be lower than the load by 0.5 %",
            ),
        ),
        # Without loss the forwarded rate is the load.
        (GoalWords("NDR", 0.0, exceed_ratio=0.5, trial_s=1.0, given_as="forwarded rate").text, NDR, ()),
        (goal_text(LESS), NDR, ("bounds lie within 0.5 % in A and 0.1 % in B",)),
    ],
)  # fmt: skip
def test_an_unknown_setting_or_less_evidence_is_a_remark(goals: str, metric: Measure, remarks: tuple[str, ...]) -> None:
    """Unknown is not unlike; but a reader is told."""
    found = likeness(OWN_ROW, replace(OWN_ROW, goals=goals), metric)
    assert (found.alike, found.remarks) == (True, remarks)


def test_series_are_judged_as_their_rows_are_and_their_origin_is_part_of_their_identity() -> None:
    assert likeness(series_of(OWN_ROW), series_of(PEER), NDR) == likeness(OWN_ROW, PEER, NDR)
    assert likeness(OWN_ROW, PEER, NDR).remarks == ("A is a result of csit-density and B of nfvbench",)
    assert series_of(OWN_ROW) != series_of(replace(OWN_ROW, origin="nfvbench"))


@pytest.mark.parametrize(
    ("words", "low", "high"),
    [
        (GoalWords("PDR", 0.005, step_pps=0.2), 0.9, 1.1),
        (GoalWords("PDR", 0.005, step_pps=0.2, relative_width=0.5), 0.9, 1.1),
        (GoalWords("PDR", 0.005, relative_width=0.01), 1.0, 1.01),
        (GoalWords("PDR", 0.2, relative_width=0.01, given_as="forwarded rate"), 1.0, 1.2625),
        (GoalWords("PDR", 0.005), 1.0, inf), (GoalWords("NDR", 0.0, relative_width=0.01), 1.0, inf),
    ],
)  # fmt: skip
def test_a_figure_without_bounds_lies_where_its_definition_has_it(words: GoalWords, low: float, high: float) -> None:
    found = without_bounds(replace(OWN_ROW, goals=words.text), PDR, 1.0)
    assert found == pytest.approx((low, high))


def test_rounding_is_reported_and_counted() -> None:
    """A figure printed as 4.6 Mpps stands for 4.55 to 4.65."""
    printed = replace(OWN_ROW, goals=GoalWords("NDR", 0.0, step_pps=100_000.0).text)
    assert resolution_pps(printed, NDR) == resolution_pps(ROWS[0], NDR) == 50_000
    assert resolution_pps(printed, PDR) == resolution_pps(OWN_ROW, NDR) == 0
    rounded = "NDR of B is rounded to 100,000 pps, so it may be off by 50,000 pps"
    assert rounded in likeness(OWN_ROW, printed, NDR).remarks


@pytest.mark.parametrize("goal", [*LADDER.goals, *QUICK.goals, *SOAK.goals], ids=lambda goal: goal.name)
def test_the_words_of_our_own_goals_are_read_back(goal: Goal) -> None:
    found = read_goal(goal_text(goal), goal.name)
    read = (found.loss_ratio, found.exceed_ratio, found.relative_width, found.trial_s)
    assert read == (goal.loss_ratio, goal.exceed_ratio, goal.relative_width, goal.final_trial_duration_s)


@given(
    st.builds(
        GoalWords,
        name=st.sampled_from(["NDR", "PDR", "SOAK"]),
        loss_ratio=st.floats(0, 0.9999, allow_subnormal=False),
        exceed_ratio=st.none() | st.sampled_from([0.0, 0.125, 0.5]),
        relative_width=st.none() | st.sampled_from([0.005, 0.0001]),
        trial_s=st.none() | st.sampled_from([0.25, 1.0, 60.0]),
        given_as=st.none() | st.just("forwarded rate"),
        step_pps=st.none() | st.just(1e5),
    ),
    st.integers(1, 99),
    st.none() | st.sampled_from([0.5, 1.0, 12.0]),
)
def test_words_are_read_back_whatever_is_left_out(words: GoalWords, trials: int, trial_s: float | None) -> None:
    text = "; ".join([words.text, mrr_words(trials, trial_s), ONE_WAY])
    found = read_goal(text, words.name)
    assert found.loss_ratio == pytest.approx(words.loss_ratio, rel=1e-15)
    assert replace(found, loss_ratio=words.loss_ratio) == words
    assert read_goal(text, "MRR") == GoalWords("MRR", trial_s=trial_s)


@pytest.mark.parametrize("text", ["", "; ;", "NDR", "NDR loss <= x%", "PDR loss <= 0.5% and more", "MRR x"])
def test_words_of_another_hand_say_nothing(text: str) -> None:
    assert [read_goal(text, name) for name in ("NDR", "PDR", "MRR")] == [None] * 3


def test_published_rows_say_so_have_the_cores_and_every_cell_of_the_slides_once() -> None:
    """19 cells with NF-1c and 23 with NF-0.5c fit on 28 cores, for each of three service types."""
    counted = Counter((row.service_type, row.nf_size) for row in ROWS)
    sizes = (("1c", 19), ("0.5c", 23))
    assert counted == {(kind, size): cells for kind in ("VSC", "CSC", "CSP") for size, cells in sizes}
    assert len({row.anchor for row in ROWS}) == len(ROWS) == 126
    assert len({(row.service_type, row.nf_size, row.nf_chains, row.nf_nodes) for row in ROWS}) == 126
    assert {(row.origin, row.world) for row in ROWS} == {("fdio-csit 1904 (published)", "published")}
    assert all("not measured here" in row.evidence for row in ROWS)
    assert (names(), "CSIT-1904" in title(FDIO_2019)) == ((FDIO_2019,), True)
    with pytest.raises(ConfigError, match="no reference set 'fdio-2020'; choose from fdio-2019"):
        reference_items("fdio-2020")
    for one in (item.row for item in reference_items(FDIO_2019)):
        per_nf = 1.5 if one.nf_size == "1c" else 1.0
        assert one.slide_cores == 2 + per_nf * one.nf_chains * one.nf_nodes <= 28


@pytest.mark.parametrize(
    ("service", "size", "place", "mpps"),
    [
        ("VSC", "1c", (1, 1), 4.6), ("VSC", "1c", (2, 1), 5.1), ("VSC", "1c", (4, 1), 4.6), ("VSC", "1c", (10, 1), 4.0),
        ("VSC", "1c", (1, 10), 0.9), ("CSC", "1c", (2, 4), 2.1), ("CSP", "1c", (1, 10), 6.6),
        ("VSC", "0.5c", (10, 2), 2.3), ("CSC", "0.5c", (6, 4), 1.8), ("CSP", "0.5c", (2, 10), 5.5),
    ],
)  # fmt: skip
def test_figures_are_as_printed(service: str, size: str, place: tuple[int, int], mpps: float) -> None:
    (series,) = (one for one in all_series(ROWS) if (one.service_type, one.nf_size) == (service, size))
    (matrix,) = matrices(ROWS, series)
    cell = matrix.cells[place]
    assert (matrix.metric, cell.value_pps, cell.upper_pps) == (NDR, mpps * 1e6, mpps * 1e6), "no bound was printed"


def test_ones_own_ndr_may_be_laid_beside_them_and_a_simulated_one_may_not() -> None:
    """The question is the same (no loss); the result says what the slides leave out."""
    published = ROWS[0]
    own = replace(published, origin=OWN, goals=profile_text(LADDER))
    found = likeness(own, published, NDR)
    assert found.alike and len(found.remarks) == 4
    assert not likeness(replace(own, simulated=True), published, NDR).alike
    assert not likeness(own, published, PDR).alike, "the slides print no PDR"


@pytest.mark.parametrize(
    ("own_pps", "outcome"),
    [
        ((4.56e6, 4.58e6), Outcome.CANNOT_TELL), ((4.62e6, 4.64e6), Outcome.CANNOT_TELL),
        ((4.72e6, 4.74e6), Outcome.LOWER), ((4.35e6, 4.48e6), Outcome.HIGHER),
    ],
)  # fmt: skip
def test_a_difference_below_the_printed_digit_means_nothing(own_pps: tuple[float, float], outcome: Outcome) -> None:
    """4.6 Mpps stands for 4.55 to 4.65."""
    own = replace(ROWS[0], origin=OWN, testbed="t1", goals=profile_text(LADDER), ndr_complete=True)
    own = replace(own, ndr_lower_pps=own_pps[0], ndr_upper_pps=own_pps[1])
    (change,) = compare([own], [ROWS[0]]).changes
    assert change.outcome is outcome
