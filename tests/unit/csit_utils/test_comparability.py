"""What may be compared: definitions decide, and every difference is a sentence."""

from dataclasses import replace
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csit_utils.analysis.comparisons.comparability import likeness, resolution_pps, without_bounds
from csit_utils.analysis.grouping import series_of
from csit_utils.dataset.goal_words import ONE_WAY, GoalWords, goal_text, mrr_words, profile_text, read_goal
from csit_utils.dataset.rows import MRR, NDR, PDR
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


def test_equal_definitions_are_alike_without_a_word() -> None:
    """Two runs of one profile, on whatever testbed, are compared."""
    found = likeness(OWN_ROW, replace(OWN_ROW, testbed="t2"), PDR)
    assert found.alike
    assert not found.remarks


def test_loss_trials_and_mix_of_two_tools_are_distinguished() -> None:
    """Every difference of definition has its own sentence with both numbers."""
    found = likeness(OWN_ROW, PEER, PDR)
    assert not found.alike
    assert found.differences == (
        "IMIX is 7:4:1 of 64/570/1518 B in A and 7:4:1 of 64/594/1518 B in B",
        "PDR means loss <= 0.5 % in A and <= 0.1 % in B",
        "a load still counts as PDR when 50 % of its trial time loses more in A, and 0 % in B",
        "PDR is decided by trials of 1 s in A and of 60 s in B",
    )
    assert found.remarks == ("A is a result of csit-density and B of nfvbench",)


def test_series_are_judged_as_their_rows_are() -> None:
    """A matrix may be laid beside another one exactly where their tests may."""
    one, other = series_of(OWN_ROW), series_of(PEER)
    assert one is not None
    assert other is not None
    assert likeness(one, other, NDR) == likeness(OWN_ROW, PEER, NDR)


def test_origin_is_part_of_the_identity_of_a_series() -> None:
    """Equal words in another tool's file still make another matrix."""
    assert series_of(OWN_ROW) != series_of(replace(OWN_ROW, origin="nfvbench"))


def test_simulated_and_measured_are_never_alike() -> None:
    found = likeness(OWN_ROW, replace(OWN_ROW, simulated=True), MRR)
    assert found.differences == ("A is measured and B is simulated",)


def test_directions_and_sizes_are_differences() -> None:
    one_way = replace(OWN_ROW, goals=f"{OWN_ROW.goals}; {ONE_WAY}", frame="64B")
    assert likeness(OWN_ROW, one_way, NDR).differences == (
        "frames are IMIX (7x64, 4x570, 1x1518) in A and 64B in B",
        "A counts both directions and B one direction",
    )


def test_a_goal_that_one_side_does_not_define_is_a_difference() -> None:
    assert likeness(OWN_ROW, replace(OWN_ROW, goals=None), NDR).differences == ("B does not say what NDR means in it",)


def test_an_unreported_setting_is_a_remark() -> None:
    """Unknown is not unlike; but a reader is told."""
    untold = replace(OWN_ROW, goals=GoalWords("PDR", 0.005, given_as="forwarded rate").text)
    found = likeness(OWN_ROW, untold, PDR)
    assert found.alike
    assert found.remarks == (
        "B does not report the length of its trials",
        "B does not report its exceed ratio",
        "PDR of B is a forwarded rate, which may be lower than the load by 0.5 %",
    )


def test_without_loss_the_forwarded_rate_is_the_load() -> None:
    """So there is nothing to remark."""
    told = GoalWords("NDR", 0.0, exceed_ratio=0.5, trial_s=1.0, given_as="forwarded rate")
    assert not likeness(OWN_ROW, replace(OWN_ROW, goals=told.text), NDR).remarks


@pytest.mark.parametrize(
    ("words", "low", "high"),
    [
        (GoalWords("PDR", 0.005, step_pps=0.2), 0.9, 1.1),
        (GoalWords("PDR", 0.005, step_pps=0.2, relative_width=0.5), 0.9, 1.1),
        (GoalWords("PDR", 0.005, relative_width=0.01), 1.0, 1.01),
        (GoalWords("PDR", 0.2, relative_width=0.01, given_as="forwarded rate"), 1.0, 1.2625),
        (GoalWords("PDR", 0.005), 1.0, inf),
        (GoalWords("NDR", 0.0, relative_width=0.01), 1.0, inf),
    ],
)
def test_a_figure_without_bounds_lies_where_its_definition_has_it(words: GoalWords, low: float, high: float) -> None:
    found = without_bounds(replace(OWN_ROW, goals=words.text), PDR, 1.0)
    assert found == pytest.approx((low, high))


def test_rounding_is_reported_and_counted() -> None:
    """A figure printed as 4.6 Mpps stands for 4.55 to 4.65."""
    printed = replace(OWN_ROW, goals=GoalWords("NDR", 0.0, step_pps=100_000.0).text)
    assert resolution_pps(printed, NDR) == 50_000
    assert resolution_pps(printed, PDR) == 0
    assert resolution_pps(OWN_ROW, NDR) == 0
    assert "NDR of B is rounded to 100,000 pps, so it may be off by 50,000 pps" in (
        likeness(OWN_ROW, printed, NDR).remarks
    )


def test_less_evidence_for_the_same_question_is_a_remark_but_other_trials_are_not() -> None:
    narrow = LADDER.goals[0].model_copy(update={"relative_width": 0.001, "duration_sum_s": 60.0})
    found = likeness(OWN_ROW, replace(OWN_ROW, goals=goal_text(narrow)), NDR)
    assert found.alike
    assert found.remarks == ("bounds lie within 0.5 % in A and 0.1 % in B",)
    assert not likeness(OWN_ROW, replace(OWN_ROW, goals=profile_text(QUICK)), NDR).alike


@pytest.mark.parametrize("goal", [*LADDER.goals, *QUICK.goals, *SOAK.goals], ids=lambda goal: goal.name)
def test_the_words_of_our_own_goals_are_read_back(goal: Goal) -> None:
    found = read_goal(goal_text(goal), goal.name)
    assert found.loss_ratio == goal.loss_ratio
    assert found.exceed_ratio == goal.exceed_ratio
    assert found.relative_width == goal.relative_width
    assert found.trial_s == goal.final_trial_duration_s


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
    assert read_goal(text, "NDR") is None
    assert read_goal(text, "PDR") is None
    assert read_goal(text, "MRR") is None
