"""A sweep that was cut short resumes with its next load, on a new deployment."""

from pathlib import Path

import pytest

from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.request.traffic import Protocol
from resources.libraries.python.studies.shared.progress import StepEnded
from resources.libraries.python.studies.sweep.model.record import Bursts, Rates, Sweep
from resources.libraries.python.studies.sweep.request import SweepRequest
from resources.libraries.python.studies.sweep.run import ServiceSweep
from resources.libraries.python.testbed.deployment.cell import CellUnderTest
from resources.libraries.python.testbed.kinds.simulated_testbed import SimulatedTestbed
from tests.builders import SIM
from tests.unit.studies.worlds import Killed

RATES = SweepRequest(
    name="router",
    cell=Cell(service_type=ServiceType.CSP, nf_chains=1, nf_nodes=1, nf_kinds=(NfKind("linux_router"),)),
    frame=frame("64B"),
    flows=1,
    protocol=Protocol.IP,
    duration_s=1,
    rates=Rates(start_pps=1000, stop_pps=5000, step_pps=1000),
    width=None,
)
BURSTS = RATES.model_copy(update={"rates": None, "bursts": Bursts(rate_pps=1000, on_s=1, off_s=1), "duration_s": 5})


def run(asked: SweepRequest, journal: Path, killed_after: int = 0) -> tuple[Sweep, ServiceSweep, list[StepEnded]]:
    """A sweep with a journal; it may be killed after a load."""
    seen: list[StepEnded] = []

    def ended(step: StepEnded) -> None:
        seen.append(step)
        if step.number == killed_after:
            raise Killed

    world = SimulatedTestbed(SIM)
    sweep = ServiceSweep(SIM, world, asked, world.environment(), ended)
    sweep.plan()
    with sweep.journal()(journal, sweep.digest()) as opened:
        sweep.resume(opened)
        try:
            return sweep.run(), sweep, seen
        finally:
            sweep.remove()


@pytest.mark.parametrize("asked", [RATES, BURSTS], ids=["loads", "bursts"])
def test_a_resumed_sweep_has_every_second_once_and_a_warning(tmp_path: Path, asked: SweepRequest) -> None:
    with pytest.raises(Killed):
        run(asked, tmp_path / "cut.jsonl", killed_after=3)
    found, sweep, _ = run(asked, tmp_path / "cut.jsonl")
    assert len({(row.rate_pps, row.second) for row in found.samples}) == len(found.samples) == 5
    assert len(found.points) == (0 if asked.bursts else 5)
    assert any("3 loads were measured before the run was resumed" in text for text in sweep.draft.warnings)


def test_a_load_in_which_a_part_dies_is_measured_again_on_a_new_deployment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    states = iter([(), ("nf-1-1 has died",)])
    monkeypatch.setattr(CellUnderTest, "problems", lambda _: next(states, ()))
    found, sweep, seen = run(RATES, tmp_path / "sweep.jsonl")
    assert len(found.points) == len(seen) == 5 and not any(step.failed for step in seen)
    assert [text for text in sweep.draft.warnings if text.endswith("measured once more: nf-1-1 has died")]


def test_rates_that_were_found_out_stay(tmp_path: Path) -> None:
    asked = RATES.model_copy(update={"rates": None})
    with pytest.raises(Killed):
        run(asked, tmp_path / "sweep.jsonl", killed_after=2)
    text = (tmp_path / "sweep.jsonl").read_text(encoding="utf-8")
    start_pps = float(text.split('"start_pps":')[1].split(",")[0])
    found, _, _ = run(asked, tmp_path / "sweep.jsonl")
    assert found.spec.rates is not None and found.spec.rates.start_pps == start_pps
    assert text in (tmp_path / "sweep.jsonl").read_text(encoding="utf-8")


def test_a_sweep_ends_early_where_loads_lose_too_much(tmp_path: Path) -> None:
    asked = RATES.model_copy(update={"rates": Rates(start_pps=1e6, stop_pps=9e6, step_pps=1e6), "stop_loss_ratio": 0.2})
    found, _, seen = run(asked, tmp_path / "sweep.jsonl")
    assert 3 <= len(found.points) < 9 and len(seen) == len(found.points)


def test_another_plan_or_other_rates_begin_anew(tmp_path: Path) -> None:
    run(RATES, tmp_path / "sweep.jsonl")
    for other in (RATES.model_copy(update={"flows": 2}), RATES.model_copy(update={"duration_s": 2})):
        assert all(step.work for step in run(other, tmp_path / "sweep.jsonl")[2])
