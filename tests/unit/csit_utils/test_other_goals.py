"""Re-goal: bounds for other definitions of NDR and PDR, by hand and in simulated traffic; MLRsearch's checklist."""

import json
from pathlib import Path
from random import Random

import pytest

from csit_utils.studies.density.analysis.checklist import CheckedRequirement, checklist
from csit_utils.studies.density.analysis.other_goals import GOALS, GoalAnswer, TrialsNeeded, goal_of, other_goals
from csit_utils.studies.density.answer_text import OtherGoalView
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.measurements.trial import TrialResult
from resources.libraries.python.model.request.goal import SearchProfile
from resources.libraries.python.search.algorithms.conformance import REQUIREMENTS
from resources.libraries.python.search.profiles import LADDER, REFERENCE
from tests.unit.csit_utils.builders import result
from tests.unit.csit_utils.datasets import invoked
from tests.unit.csit_utils.foreign_files import nfvbench, packed, searched
from tests.unit.search.search_fakes import Bench, capped, search, trial_result

BY_NAME = {asked.goal.name: asked for asked in GOALS}


def said(name: str, *trials: TrialResult) -> GoalAnswer:
    (answer,) = other_goals(trials, [BY_NAME.get(name) or goal_of(name)])
    return answer


def seconds_of(load_pps: float, losses: list[int]) -> list[TrialResult]:
    """Trials of one second."""
    return [trial_result(load_pps, lost, sent=round(load_pps)) for lost in losses]


def minute(load_pps: float, lost: int = 0) -> TrialResult:
    return trial_result(load_pps, lost, duration_s=60.0)


def test_trials_of_the_goals_duration_decide_as_in_rfc_2544() -> None:
    answer = said("rfc2544", minute(1e6), minute(1.004e6, 1))
    assert (answer.lower.load_pps, answer.upper.load_pps, answer.complete) == (1e6, 1.004e6, True)
    assert OtherGoalView(answer).evidence == "decided"
    answer = said("rfc2544", minute(1e6), minute(2e6, 1))
    assert answer.needed == TrialsNeeded(1.5e6, 1, 60.0), "bounds too far apart ask for a load between them"
    assert OtherGoalView(answer).bounds == "1.00 … 2.00 Mpps"
    answer = said("rfc2544", minute(1e6))
    assert (answer.complete, OtherGoalView(answer).bounds) == (True, "at least 1.00 Mpps")
    assert other_goals([]) == ()


def test_minutes_and_trials_that_were_to_end_early_decide_where_they_can() -> None:
    lossy, clean = minute(1e6, 1), minute(1e6)
    assert said("tst009", lossy).needed == TrialsNeeded(1e6, 1, 60.0)
    assert said("tst009", lossy, clean).lower is not None
    failed = said("tst009", lossy, lossy)
    assert (failed.upper.load_pps, failed.upper.by_shorter) == (1e6, False)
    assert said("csit-ndr", minute(1e6)).lower is not None
    may_be = said("csit-ndr", minute(1e6, 1))
    assert may_be.lower is may_be.upper is None
    trial = minute(1e6).trial.model_copy(update={"abort_loss_ratio": 0.0})
    passed = minute(1e6).model_copy(update={"trial": trial})
    ended = passed.model_copy(update={"aborted": True, "offered_duration_s": 1.0})
    assert said("nfvbench-pdr", passed).lower.load_pps == 1e6
    assert said("nfvbench-pdr", passed, ended).lower is None
    lossy = trial_result(2e6, 900, sent=1000)
    trial = lossy.trial.model_copy(update={"abort_loss_ratio": 0.0})
    answer = said("loss=0.5,trial=1", lossy.model_copy(update={"trial": trial, "aborted": True}))
    assert answer.upper is None and answer.needed is not None


def test_seconds_disprove_a_minute_without_loss_and_do_not_prove_it() -> None:
    answer = said("rfc2544", *seconds_of(1e6, [0] * 21))
    assert (answer.lower, answer.upper, answer.needed) == (None, None, TrialsNeeded(1e6, 1, 60.0))
    assert OtherGoalView(answer).evidence == "undecided: 1 trial of 60 s at 1.00 Mpps needed"
    often = said("rfc2544", *seconds_of(1e6, [3] * 5 + [0] * 16))
    assert often.upper.by_shorter
    assert "upper bound by shorter trials (95 %)" in OtherGoalView(often).evidence
    assert said("rfc2544", *seconds_of(1e6, [3] + [0] * 20)).upper is None
    lost = round(0.001 * 1e6 * 60)
    assert said("nfvbench-pdr", *seconds_of(1e6, [lost] * 8)).upper is None
    assert said("nfvbench-pdr", *seconds_of(1e6, [lost + 1] * 8)).upper is not None


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.002, 0.02, 0.1, 0.4, 0.6])
@pytest.mark.parametrize("name", ["rfc2544", "tst009", "csit-ndr", "loss=0,trial=5,sum=60,exceed=0.5"])
def test_bounds_by_shorter_trials_are_wrong_in_at_most_5_percent(share: float, name: str) -> None:
    """The truth is made of seconds that lose a packet or not: what most decisions by full-length trials would be."""
    random = Random(f"{share} {name}")
    goal = (BY_NAME.get(name) or goal_of(name)).goal
    trial_s, trials = goal.final_trial_duration_s, round(goal.duration_sum_s / goal.final_trial_duration_s)

    def fails() -> bool:
        lossy = sum(any(random.random() < share for _ in range(round(trial_s))) for _ in range(trials))
        return lossy > trials * goal.exceed_ratio

    decisions, wrong = 200, 0.0
    chance = sum(fails() for _ in range(300)) / 300
    for _ in range(decisions):
        # Half-second trials, so that none has the goal's duration.
        halves = [int(random.random() < 1 - (1 - share) ** 0.5) for _ in range(random.randint(1, 60))]
        answer = said(name, *(trial_result(1e6, lost, duration_s=0.5) for lost in halves))
        wrong += (1 - chance) if answer.upper else chance if answer.lower else 0.0
    assert wrong / decisions <= 0.05 + 0.03  # the second is the error of this simulation


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("ndr", "no goal ndr; choose from csit-ndr, "), ("loss=x", "loss is no number"),
        ("loss=nan", "loss is not between 0 and"), ("trial=1e9", "trial is not between"),
        ("ratio=1", "unknown setting ratio; choose from loss, "),
        ("trial=30,sum=3", "sum of 3 s is below one trial of 30 s"),
    ],
)  # fmt: skip
def test_bad_goals_are_refused_in_a_sentence(text: str, part: str) -> None:
    with pytest.raises(ConfigError, match=part):
        goal_of(text)


def test_settings_describe_a_goal() -> None:
    goal = goal_of("loss=1e-4,trial=10").goal
    assert (goal.loss_ratio, goal.final_trial_duration_s, goal.duration_sum_s, goal.exceed_ratio) == (1e-4, 10, 10, 0)


def regoaled(path: Path, content: bytes, *words: object) -> str:
    path.write_bytes(content)
    return str(invoked("regoal", path, *words).stdout)


def test_the_command_prints_a_line_for_each_goal_also_for_trials_of_nfvbench(tmp_path: Path) -> None:
    record = result(trials=(trial_result(1e6, duration_s=60.0), trial_result(1.004e6, 1, duration_s=60.0)))
    path, content = tmp_path / "record.json", record.model_dump_json().encode()
    assert [line.split("\t")[2] for line in regoaled(path, content).splitlines()[1:]] == [*BY_NAME]
    found = json.loads(regoaled(path, content, "--goal", "rfc2544", "--format", "json"))
    asked = [found[name] for name in ("lower_pps", "upper_pps", "complete", "needed_trials")]
    assert asked == [1e6, 1.004e6, True, None]
    found = searched()
    short = {"tx_pps": 3_722_000, "drop_percentage": 40.0, "warning": "WARNING: not all was sent"}
    found["iteration_stats"]["ndr_pdr"].append(short)
    content = packed(nfvbench({"64": found}))
    line = json.loads(regoaled(tmp_path / "run.json", content, "--goal", "nfvbench-pdr", "--format", "json"))
    assert (line["lower_pps"], line["upper_pps"], line["lower_by_shorter"]) == (3_720_238, 3_740_000, False)


def checked(profile: SearchProfile, capacity_pps: float = 4e6) -> dict[str, CheckedRequirement]:
    found = search(Bench(capped(capacity_pps)), profile=profile)
    record = result(ndr=found.ndr, pdr=found.pdr, search=found.record, trials=tuple(found.trials))
    return {each.key: each for each in checklist(record)}


def test_requirements_that_are_not_met_and_evidence_have_the_numbers_of_the_record() -> None:
    assert all(each.evidence or each.deviations for each in checked(LADDER).values())
    found = checked(REFERENCE)
    assert list(found) == list(REQUIREMENTS)
    assert [key for key, each in found.items() if not each.met] == ["trial", "trial-forwarding-ratio"]
    assert "NDR 3.99 Mpps, upper bound 4.0" in found["relevant-lower-bound"].evidence
    assert found["irregular-result"].evidence == "NDR regular; PDR regular"
    assert checklist(result(search=None)) == (), "records without a search have no checklist"
    found = checked(REFERENCE, 40e6)
    assert found["irregular-result"].evidence == "NDR irregular; PDR irregular"
    assert "no load was an upper bound" in found["goal-width"].deviations[0]
