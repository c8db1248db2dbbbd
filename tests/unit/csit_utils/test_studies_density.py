"""Simulated density tests stay within the stated bounds of the benchmark."""

import pytest

from csit_utils.bench.studies import density
from csit_utils.bench.studies.density import AnsweredQuestion, missed_in_histories, questions, table
from csit_utils.studies.density.analysis.answers import Known, LoadWitness


@pytest.mark.slow
def test_every_line_is_within_its_bound() -> None:
    lines = table(20)
    assert [line.what for line in lines if line.value > line.bound] == []


@pytest.mark.slow
def test_an_answer_by_a_higher_load_alone_would_be_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is missed at a higher load was taken for missed at the load that was asked for."""

    def missed_at(known: Known, load_pps: float) -> LoadWitness | None:
        return None if known.met and known.met[-1].load_pps >= load_pps else known.missed

    monkeypatch.setattr(Known, "missed_at", missed_at)
    found: list[AnsweredQuestion] = [each for seed in range(4) for each in questions(seed)]
    assert sum(each.before not in {None, each.is_true} for each in found) > len(found) * density.WRONG


@pytest.mark.slow
@pytest.mark.parametrize("runs", [6, 13, 30])
def test_the_stated_chance_is_that_of_histories(runs: int) -> None:
    found = missed_in_histories(2000, runs)
    assert found.missed / found.total == pytest.approx(found.stated, abs=0.04)
