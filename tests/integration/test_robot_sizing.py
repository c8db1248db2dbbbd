"""The sizing suite: Clearwater on the simulated testbed, the SIP service with real calls on this machine."""

import csv
import json
from pathlib import Path

import pytest

from resources.libraries.python.drivers.services.orchestrator import missing
from tests.integration.robot_runs import LOCAL, SIM, SPECS, network_state, run_robot, wait_for_network_state
from tests.integration.services import groups, missing_for_instances
from tests.integration.sizing_suite import SUITE, records, sizing_of, suite


@pytest.mark.parallel
def test_clearwater_takes_the_published_way_and_a_resumed_run_measures_nothing_again(tmp_path: Path) -> None:
    first, again = tmp_path / "first", tmp_path / "again"
    done = run_robot(first, *SIM, "-t", "Clearwater", sources=[SUITE])
    assert "clearwater: at most 4 sizes, at most 19 loads on each, each 10 times" in done.stdout
    assert ": 600 calls/s (estimate " in done.stdout and ", the best of 3 sizes measured; " in done.stdout
    assert "; resources exhausted" in done.stdout
    record = records(first)["Clearwater"]
    found = sizing_of(record)
    assert record.simulated
    assert [row.name for row in found.sizes] == ["bn1s-sp1s-hs1s", "bn1s-sp1m-hs1s", "bn1s-sp1m-hs1m"]
    assert [row.capacity for row in found.sizes] == [350.0, found.sizes[1].capacity, 600.0]
    traces = first / "characterization" / "Clearwater"
    assert len(list(traces.glob("bn*/*.csv"))) == 9
    with (traces / "sizing.csv").open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == sum(len(row.offered) for row in found.sizes)

    run_robot(again, *SIM, "-t", "Clearwater", "-v", f"RESUME:{first}", sources=[SUITE])
    resumed = sizing_of(records(again)["Clearwater"])
    assert [row.carried_over for row in resumed.sizes] == [True] * 3
    assert [row.offered for row in resumed.sizes] == [row.offered for row in found.sizes]


@pytest.mark.parallel
def test_what_is_real_is_skipped_where_nothing_is(tmp_path: Path) -> None:
    done = run_robot(tmp_path, *SIM, "-i", "SIPORHTTP", sources=[SUITE])
    assert "0 passed, 0 failed, 5 skipped" in done.stdout
    assert "needs real hosts" in done.stdout


@pytest.mark.root
@pytest.mark.skipif(
    bool(missing_for_instances() or list(missing())), reason="; ".join(map(str, missing())) or missing_for_instances()
)
def test_calls_with_invite_reach_the_called_side_through_the_service(tmp_path: Path) -> None:
    deployment = json.loads((SPECS / "sip-service" / "deployment.json").read_text(encoding="utf-8"))
    workload = json.loads((SPECS / "sip-service" / "reg-invite.json").read_text(encoding="utf-8"))
    # The two loads are far below and far above what the smallest size carries.
    smallest = {part["name"]: {"flavor": "small"} for part in deployment["components"]}
    deployment |= {"mode": "custom", "sizes": [{"components": smallest}]}
    workload |= {"range": {"min": 15, "max": 315}, "increase": 300, "duration_s": 4}
    path = suite(tmp_path, "sip-service", {"deployment.json": deployment, "reg-invite.json": workload})
    before = network_state(), groups()
    run_robot(tmp_path / "out", *LOCAL, "-t", "SIP Service With Invite Calls", sources=[path], seconds=120)
    wait_for_network_state(before[0])
    assert groups() == before[1]
    record = records(tmp_path / "out")["SIP Service With Invite Calls"]
    assert not record.simulated
    assert record.facts["service"]["instances"].startswith("network namespaces with control groups")
    (size,) = sizing_of(record).sizes
    low, high = size.offered
    assert (low.ratio > 0.9, high.ratio < 0.9) == (True, True)
    # Every call that succeeded for the caller was answered, acknowledged and ended at the called side.
    assert low.figures["answered"] == pytest.approx(low.mean, rel=0.15)
    assert 0 < high.figures["answered"] < high.load
    # Three requests are for the registrar, and three go through both to the called side; all but one are answered.
    for instance in ("edge-1", "registrar-1"):
        assert (low.use[instance].network_bps or 0) > 16 * low.mean * 8 * 300, instance
