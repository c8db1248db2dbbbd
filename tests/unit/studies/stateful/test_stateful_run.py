"""A study of stateful density on simulated hash tables, whose truth is no rate and no formula; its searches alone."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from resources.libraries.python.errors import ConfigError, CsitError, NoTraffic, PlanError, Unsupported
from resources.libraries.python.model.load import load_yaml
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.linerate import MaxRate
from resources.libraries.python.search.profiles import profile
from resources.libraries.python.studies.stateful import model, run
from resources.libraries.python.studies.stateful.analysis import CAPACITY, RATE, TABLES, TEAR_DOWN, stateful_tables
from resources.libraries.python.studies.stateful.run import ConnectionLimits, StatefulTest, search_capacity, search_rate
from resources.libraries.python.testbed.kinds.simulated_testbed import SimulatedTestbed
from tests.builders import SIM, finished
from tests.unit.search.search_fakes import planted

SPEC = """
name: small
kind: linux_nat
instances: [1, 2]
frame: 64B
search: quick,width=0.05,trial=0.1,sum=0.3
tear_downs: 2
connections: 2000
timeout_s: 10
"""


def topology(**tables: object) -> Topology:
    small = {"limit": 10_000, "buckets": 4096, **tables}
    return planted(overhead_s=0.0, generator_max_pps=150_000, state_tables=small)


def study_of(folder: Path, testbed: Topology, text: str = SPEC) -> StatefulTest:
    (folder / "spec.yaml").write_text(text, encoding="utf-8")
    world = SimulatedTestbed(testbed)
    return StatefulTest(testbed, world, load_yaml(folder / "spec.yaml", model.StatefulSpec), world.environment())


def run_of(folder: Path, testbed: Topology, text: str = SPEC) -> StatefulTest:
    study = study_of(folder, testbed, text)
    study.plan()
    study.run()
    study.enough()
    return study


def measured(folder: Path, testbed: Topology, text: str = SPEC) -> tuple[model.CellConnections, ...]:
    return run_of(folder, testbed, text).result().cells


def rate(cell: model.CellConnections) -> float:
    return cell.rate.lower_cps


@pytest.mark.slow
def test_the_rate_is_that_of_a_thread_that_walks_chains_and_falls_with_more_of_them(tmp_path: Path) -> None:
    """Without chains a connection takes 20 us: 50,000 per second. Chains of one bucket make it slower and slower."""
    flat = measured(tmp_path, topology(insert_ns=20_000, link_ns=0, queue=32))
    assert rate(flat[0]) == pytest.approx(50_000, rel=0.06)
    assert rate(flat[1]) == pytest.approx(2 * rate(flat[0]), rel=0.06), "two tables take twice as many"
    chained = measured(tmp_path, topology(insert_ns=20_000, link_ns=500, buckets=50, queue=32))
    assert rate(chained[0]) < 0.8 * rate(flat[0])
    shared = measured(tmp_path, topology(insert_ns=20_000, link_ns=0, queue=32, host_share=0.5))
    assert rate(shared[1]) == pytest.approx(2 * rate(flat[0]) / 1.5, rel=0.06), "each table slows the other one"
    assert flat[1].rate.by_instance_cps == pytest.approx([rate(flat[1]) / 2] * 2, rel=0.01)


@pytest.mark.parametrize("when_full", ["refuse", "evict"])
@pytest.mark.parametrize("reports_limit", [True, False])
def test_the_capacity_is_the_size_of_a_table_refusing_or_evicting(
    tmp_path: Path, when_full: str, reports_limit: bool
) -> None:
    truth = topology(limit=5000, when_full=when_full, reports_limit=reports_limit, insert_ns=10_000)
    for cell in measured(tmp_path, truth, SPEC + "capacity_width: 0.001"):
        assert 4990 <= cell.capacity.entries <= 5000 < cell.capacity.refused_at <= 5010
        full = [each for each in cell.trials if each.phase is model.Phase.CAPACITY and not each.complete]
        assert full and all((each.evicted if when_full == "evict" else each.dropped) for each in full)


def test_pauses_of_the_host_are_no_limit_of_a_table(tmp_path: Path) -> None:
    """A fifth of all trials loses packets: tables are filled again for a tear-down, and before they count as full."""
    truth = topology(limit=5000, paused_share=0.2, insert_ns=10_000)
    text = SPEC.replace("tear_downs: 2", "tear_downs: 8") + "capacity_width: 0.001"
    for cell in measured(tmp_path, truth, text):
        fills = [each for each in cell.trials if each.phase is model.Phase.TEAR_DOWN]
        assert len(fills) > len(cell.tear_downs) == 8
        assert all(set(each.entries) == {2000} for each in cell.tear_downs)
        assert 4950 <= cell.capacity.entries <= 5000 < cell.capacity.refused_at


def test_tear_downs_take_as_long_as_the_table_needs(tmp_path: Path) -> None:
    for cell in measured(tmp_path, topology(delete_ns=1000, walk_ns=10, buckets=1000)):
        assert cell.empty_s == pytest.approx(1e-5, rel=0.01)
        assert [each.entries for each in cell.tear_downs] == [(2000,) * cell.instances] * 2
        for each in cell.tear_downs:
            assert each.total_s == pytest.approx(2000 * 1e-6 + 1e-5, rel=0.01), "all tables at the same time"
        assert cell.tear_down_cps == pytest.approx(cell.instances * 2000 / 2.01e-3, rel=0.01)


def test_every_trial_begins_with_empty_tables_and_counts_entries_and_has_a_line_in_the_tables(tmp_path: Path) -> None:
    study = run_of(tmp_path, topology(insert_ns=20_000))
    cells = study.result().cells
    for cell in cells:
        for trial in cell.trials:
            assert all(each.entries <= each.sent for each in trial.instances), "nothing of an earlier trial is there"
        assert [check.subject for check in cell.checks] == [TABLES, TABLES, RATE, TEAR_DOWN, f"{TEAR_DOWN}, {CAPACITY}"]
        assert cell.is_valid, [check.text for check in cell.checks if not check.met]
        assert cell.rate.search_s <= 1.2 * cell.rate.sending_s
        assert cell.rate.search_s == pytest.approx(cell.rate.sending_s + cell.rate.emptying_s, rel=0.02)
    tables = dict(stateful_tables(study.draft))  # type: ignore[arg-type]  # has the one attribute that they need
    trials = sum(len(cell.trials) * cell.instances for cell in cells)
    lines = {"stateful": 2, "stateful_instances": 1 + 2, "stateful_tear_downs": 2 * (1 + 2), "stateful_trials": trials}
    assert {name: len(rows) - 1 for name, rows in tables.items()} == lines
    assert all(len(row) == len(rows[0]) for rows in tables.values() for row in rows)


def test_entries_that_are_missing_fail_a_rate_although_all_packets_arrive(tmp_path: Path) -> None:
    """A table of 2500 entries that evicts lets every packet through: no rate that fills it establishes them all."""
    cell = measured(tmp_path, topology(limit=2500, reports_limit=False, insert_ns=1000), SPEC)[0]
    assert rate(cell) <= 25_000, "as many in 0.1 s fill the table"
    lossless = [each for each in cell.trials if all(row.arrived == row.sent for row in each.instances)]
    assert any(not each.complete and each.evicted for each in lossless)


def test_a_chain_of_tables_counts_the_one_with_the_fewest_entries(tmp_path: Path) -> None:
    text = SPEC.replace("instances: [1, 2]", "instances: [2]\nnodes: [1, 2]")
    short, long = measured(tmp_path, topology(insert_ns=20_000), text)
    assert (short.name, long.name) == ("2x1", "2x2")
    assert list(long.tables) == ["nf-1-1", "nf-1-2", "nf-2-1", "nf-2-2"]
    assert rate(long) == pytest.approx(rate(short), rel=0.06)


def test_a_rate_beyond_the_table_or_the_generator_is_a_lower_bound_with_its_reason(tmp_path: Path) -> None:
    cell = measured(tmp_path, topology(insert_ns=0, link_ns=0))[0]
    assert cell.rate.upper_cps is None
    assert cell.rate.lower_cps == pytest.approx(0.8 * 10_000 / 0.1)
    assert "a table of 10,000 entries" in cell.rate.remark


def test_cells_that_do_not_fit_are_skipped_none_is_an_error_and_so_is_nothing_established(tmp_path: Path) -> None:
    study = run_of(tmp_path, topology(), SPEC.replace("[1, 2]", "[1, 64]"))
    assert [cell.name for cell in study.result().cells] == ["1x1"]
    assert "64x1" in study.result().skipped
    with pytest.raises(PlanError, match="cores"):
        study_of(tmp_path, topology(), SPEC.replace("[1, 2]", "[64]")).plan()
    with pytest.raises(CsitError, match="connections are not established at 500 per second: 10 of 50 of"):
        run_of(tmp_path, topology(limit=10, reports_limit=False, when_full="refuse"))


def test_what_cannot_be_measured_is_refused_in_a_sentence(tmp_path: Path) -> None:
    for line, wrong, reason in (
        ("kind: linux_nat", "kind: linux_firewall", "linux_firewall keeps no table of connections"),
        ("kind: linux_nat", "kind: qemu_nat", "qemu_nat keeps its table of connections in a guest"),
        ("search: quick,width=0.05,trial=0.1,sum=0.3", "search: soak", "search 'soak' has no goal without loss"),
    ):
        with pytest.raises(ConfigError, match=reason):
            study_of(tmp_path, topology(), SPEC.replace(line, wrong))
    tg = SIM.tg.model_copy(update={"generator": SIM.tg.generator.model_copy(update={"driver": "iperf3"})})
    other = SIM.model_copy(update={"nodes": {**SIM.nodes, "TG": tg}})
    with pytest.raises(Unsupported, match=r"iperf3 .* another 5-tuple"):
        study_of(tmp_path, other).plan()


def test_no_trial_asks_for_more_than_fits_on_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The generator's maximum is found in both directions; connections are opened in one."""

    def cell(pps: float, **truth: object) -> model.CellConnections:
        line = MaxRate(flow_pps=pps, direction_pps=pps, aggregate_pps=2 * pps, reason="TG.port1: 3.4 Mb/s")
        monkeypatch.setattr(run, "max_rate", lambda *_: line)
        return measured(tmp_path, topology(**truth), SPEC.replace("[1, 2]", "[1]"))[0]

    narrow = cell(5000.0)
    assert max(trial.load_cps for trial in narrow.trials if trial.phase is model.Phase.RATE) == 5000.0
    assert narrow.rate.remark.endswith("in one direction, of one packet each (TG.port1: 3.4 Mb/s)")
    assert "line" not in cell(1e9, insert_ns=1).rate.remark


Row = tuple[int, int, int]


@pytest.mark.parametrize(
    ("rows", "counted", "refused", "held", "reached"),
    [
        ([(100, 100, 100), (100, 100, 100)], {}, False, 100, 100),
        ([(100, 95, 95), (100, 90, 91)], {}, False, 91, 95),  # lost before, or behind, the tables
        ([(100, 95, 80), (100, 94, 80)], {"evicted": 29}, True, 80, 95),
        ([(100, 80, 80), (100, 94, 94)], {"dropped": 15}, True, 80, 100),
        ([(100, 80, 80)], {"dropped": None}, True, 80, 100),  # nothing tells whether the table refused some
    ],
)
def test_losses_before_a_table_are_no_refusals(
    rows: list[Row], counted: dict[str, int | None], *, refused: bool, held: int, reached: int
) -> None:
    instances = [dict(zip(("sent", "arrived", "entries"), row, strict=True)) for row in rows]
    load = {"phase": model.Phase.CAPACITY, "load_cps": 1000.0, "duration_s": 1.0, "failed": 0}
    counts = {"dropped": 0, "evicted": 0, **counted}
    made = model.ConnectionTrial.model_validate({**load, **counts, "instances": instances})
    assert (made.refused, made.held, made.reached) == (refused, held, reached)


MAX_ENTRIES = 100_000


@given(st.integers(0, MAX_ENTRIES), st.integers(1, MAX_ENTRIES), st.sampled_from([0.001, 0.01, 0.2]))
@example(capacity=5000, guess=5000, width=0.01)
def test_the_bounds_hold_the_capacity_and_are_as_close_as_asked(capacity: int, guess: int, width: float) -> None:
    tried: list[int] = []

    def passes(entries: int) -> bool:
        tried.append(entries)
        return entries <= capacity

    low, high = search_capacity(passes, guess, MAX_ENTRIES, width)
    assert low <= capacity
    assert low in tried or low == 0
    if capacity == MAX_ENTRIES:
        assert (low, high) == (MAX_ENTRIES, None)
    else:
        assert high in tried and capacity < high <= low + max(1, int(width * max(1, low)))
    assert len(tried) <= (2 if guess == capacity < MAX_ENTRIES else 40), "a guess that is right takes two attempts"
    assert all(1 <= entries <= MAX_ENTRIES for entries in tried)


@pytest.mark.parametrize(
    ("each_s", "generator_limited", "reason"),
    [
        (1.0, False, r"^no rate without a failed connection was found down to 100 per second$"),
        (30.0, False, r"down to [\d,]+ per second; the search ended early, at its limit of 58 s$"),
        (100.0, True, r"^no rate was decided by \d trials? in \d+ s$"),
    ],
)
def test_a_search_that_finds_no_rate_says_how_far_it_went(each_s: float, generator_limited: bool, reason: str) -> None:
    """Its trials establish no connection, and take so long."""
    quick, now_s = profile("quick"), 0.0

    def run(trial: Trial) -> TrialResult:
        nonlocal now_s
        now_s += each_s
        sent = round(trial.load_pps * trial.duration_s)
        return finished(trial, (sent, 0), total_duration_s=each_s, generator_limited=generator_limited)

    room = ConnectionLimits(offered_cps=10_000.0, most=1_000_000, full="fills the table")
    asked = quick.model_copy(update={"goals": quick.goals[:1]})
    with pytest.raises(NoTraffic, match=reason):
        search_rate(run, asked, frame("64B"), room, lambda: now_s, instances=1, least_cps=100.0)
