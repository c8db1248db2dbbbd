"""What a sweep has measured is there for the run that goes on with it, whatever cut the first one short."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.libraries.python.errors import ConfigError, CsitError
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.studies.sweep.journal import SweepJournal, SweepMemory
from resources.libraries.python.studies.sweep.load_steps import LoadEnded, LoadStep, MeasuredLoad, sweep
from resources.libraries.python.studies.sweep.model.record import Bursts, Rates, SweepSample, SweepSpec
from tests.unit.examples import share

SPEC = SweepSpec(rates=Rates(start_pps=100, stop_pps=500, step_pps=100), duration_s=2, frame=frame("64B"))
BURSTS = SPEC.model_copy(update={"rates": None, "bursts": Bursts(rate_pps=100, on_s=1, off_s=1), "duration_s": 5})


class Killed(BaseException):
    """In the place of a signal that nothing can catch."""


class Service:
    """Counts what is measured, and may be killed before a load."""

    def __init__(self, killed_before: int | None = None) -> None:
        self.measured: list[tuple[float, int]] = []
        self._killed_before = killed_before

    def measure(self, load: LoadStep) -> MeasuredLoad:
        if len(self.measured) == self._killed_before:
            raise Killed
        self.measured.append((load.rate_pps, load.begin_s))
        seconds = range(load.begin_s, load.begin_s + load.duration_s)
        return MeasuredLoad(tuple(second(load.rate_pps, each) for each in seconds), load.rate_pps, "as asked")


def second(rate_pps: float, number: int) -> SweepSample:
    return SweepSample(
        rate_pps=rate_pps, second=number, input_pps=rate_pps, output_pps=0.9 * rate_pps, loss_ratio=0.1, delay_s=None
    )


def run(path: Path, service: Service, spec: SweepSpec = SPEC, digest: str = "a") -> list[LoadEnded]:
    """A sweep with a journal, as a test runs it."""
    with SweepJournal(path, digest) as journal:
        memory = SweepMemory(journal)

        def measure(load: LoadStep) -> MeasuredLoad:
            found = service.measure(load)
            memory.keep(load, found)
            return found

        return list(sweep(measure, memory.spec(lambda: spec), before=memory.before))


def timeless(row: list[LoadEnded]) -> list[LoadEnded]:
    return [replace(each, left_s=0, measured_s=0) for each in row]


@pytest.mark.parametrize("spec", [SPEC, BURSTS], ids=["loads", "bursts"])
@pytest.mark.parametrize("killed_before", range(5))
def test_a_sweep_goes_on_with_its_next_load_and_ends_as_one_that_was_not_cut(
    tmp_path: Path, spec: SweepSpec, killed_before: int
) -> None:
    first, second_ = Service(killed_before), Service()
    with pytest.raises(Killed):
        run(tmp_path / "sweep.jsonl", first, spec)
    done = run(tmp_path / "sweep.jsonl", second_, spec)
    assert timeless(done) == timeless(run(tmp_path / "whole.jsonl", Service(), spec))
    assert len(first.measured) == killed_before
    assert [*first.measured, *second_.measured] == [(each.load.rate_pps, each.load.begin_s) for each in done]


def test_rates_that_were_found_out_stay(tmp_path: Path) -> None:
    with pytest.raises(Killed):
        run(tmp_path / "sweep.jsonl", Service(2))
    other = SPEC.model_copy(update={"rates": Rates(start_pps=7, stop_pps=7, step_pps=7)})
    assert [each.load.rate_pps for each in run(tmp_path / "sweep.jsonl", Service(), other)] == [100, 200, 300, 400, 500]


def test_other_settings_or_another_plan_begin_anew(tmp_path: Path) -> None:
    run(tmp_path / "sweep.jsonl", Service())
    again = Service()
    run(tmp_path / "sweep.jsonl", again, digest="b")
    assert len(again.measured) == 5
    back = Service()
    run(tmp_path / "sweep.jsonl", back, digest="a")
    assert len(back.measured) == 5, "what is above another heading is not looked for"


@settings(deadline=None, max_examples=share(40))
@given(st.data())
def test_wherever_a_journal_is_torn_no_load_is_lost_but_the_last_line(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("torn") / "sweep.jsonl"
    run(path, Service())
    whole = path.read_bytes()
    left = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:left])
    complete = whole[:left].count(b"\n")
    again = Service()
    done = run(path, again)
    assert [each.load.rate_pps for each in done] == [100, 200, 300, 400, 500]
    # A line is there when its last byte is, the end of the line or not; two lines are the heading and the spec.
    assert len(again.measured) in {5 - max(0, complete - 2), 5 - max(0, complete - 1)}


def test_a_record_says_what_was_measured_before(tmp_path: Path) -> None:
    with pytest.raises(Killed):
        run(tmp_path / "sweep.jsonl", Service(3))
    with SweepJournal(tmp_path / "sweep.jsonl", "a") as journal:
        remark = SweepMemory(journal).remark
    assert remark is not None
    assert remark.startswith("3 loads were measured in an interrupted run from 20")
    assert SweepMemory().remark is None


def test_one_process_at_a_time_writes(tmp_path: Path) -> None:
    path = tmp_path / "sweep.jsonl"
    with (
        SweepJournal(path, "a"),
        pytest.raises(CsitError, match="the run of this journal is still active"),
        SweepJournal(path, "a"),
    ):
        pass


def test_what_is_no_journal_of_a_sweep_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "sweep.jsonl"
    run(path, Service(), digest="a")
    path.write_text(path.read_text("utf-8") + '{"line":"load","at":"now"}\n', "utf-8")
    with pytest.raises(ConfigError, match=r"sweep.jsonl: line 8 is no sweep"):
        run(path, Service(), digest="a")
