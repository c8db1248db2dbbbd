"""Power on real packets: Open vSwitch that polls or sleeps."""

import re
from pathlib import Path

import pytest
import yaml

from csit_utils.studies.density.pages.energy import energy_blocks
from resources.libraries.python.drivers.vswitches.ovs.daemons import missing_on
from resources.libraries.python.studies.density.model import DensityRecord
from tests.builders import shipped
from tests.integration.redfish_bmc import EACH_CPU_W, PASSWORD, PASSWORD_VARIABLE, STILL_W, Bmc, emulator
from tests.integration.robot_runs import PROJECT, results, run_robot
from tests.loaded import load, rows_of_tests

pytestmark = pytest.mark.root

SEARCH = "quick,width=0.2,sum=1,latency=0.2"
INTERVAL_S = 0.1
NO_OVS = "; ".join(map(str, missing_on(shipped("local-ovs").dut)))


def run_ovs(folder: Path, sleep: str, bmc: Bmc) -> DensityRecord:
    """Measure Open vSwitch with a longest sleep of its threads, and the power that its CPU time takes."""
    text = (PROJECT / "topologies" / "local-ovs.yaml").read_text(encoding="utf-8")
    file = folder / "ovs.yaml"
    folder.mkdir()
    topology = yaml.safe_load(re.sub(r"ovs: \{ports: auto\}", f"ovs: {{ports: auto, {sleep}}}", text))
    (dut,) = [node for node in topology["nodes"].values() if node["type"] == "DUT"]
    dut["energy"] = bmc.settings(INTERVAL_S)
    file.write_text(yaml.safe_dump(topology), encoding="utf-8")
    chosen = {"TOPOLOGY": str(file), "NF_SIZES": "1c", "CELLS": "1x1", "SEARCH": SEARCH, "ENERGY": "2"}
    options = [word for name, value in chosen.items() for word in ("-v", f"{name}:{value}")]
    run_robot(folder / "out", *options, "-v", "QUALIFY:off", "--suite", "csc-ndrpdr", seconds=240)
    (row,) = results(folder / "out")
    return row


@pytest.mark.skipif(bool(NO_OVS), reason=NO_OVS)
def test_threads_that_sleep_take_less_power_without_traffic_than_threads_that_poll(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sushy_tools", reason="sushy-tools are not installed (requirements-dev.txt)")
    monkeypatch.setenv(PASSWORD_VARIABLE, PASSWORD)
    with emulator(tmp_path, "EnvironmentMetrics", "ovs-vswitchd") as bmc:
        polling = run_ovs(tmp_path / "polling", "pmd_sleep_max_us: 0", bmc)
        sleeping = run_ovs(tmp_path / "sleeping", "pmd_sleep_max_us: 500", bmc)
    assert polling.facts["vswitch"]["scheduling"] == "PMD threads that never sleep"
    assert "sleeping up to 500 µs" in sleeping.facts["vswitch"]["scheduling"]
    assert polling.energy and sleeping.energy
    for row in (polling, sleeping):
        assert row.energy is not None
        half = row.energy.at("PDR50")
        assert half is not None and half.p99_ns and half.received_pps > 0
    (block,) = energy_blocks(
        rows_of_tests(load([tmp_path / name / "out" / "output.xml" for name in ("polling", "sleeping")]))
    )
    assert "never sleep" in block.rows[0]["way"] and "sleeping up to 500 µs" in block.rows[1]["way"]
    powers = {row["load"]: [each["watts"] for each in block.rows if each["load"] == row["load"]] for row in block.rows}
    print(powers)
    polling_w, sleeping_w = powers["no traffic"]
    assert polling_w and sleeping_w, powers
    # Polling threads take whatever the machine leaves them: how much that is hangs on what else it does.
    assert polling_w > STILL_W + 0.1 * EACH_CPU_W and sleeping_w - STILL_W < 0.5 * (polling_w - STILL_W), powers
    for row in block.rows[2:]:
        assert row["watts"] and row["joules_per_packet"] and row["p99_ns"], powers
    one, other = polling.energy.at("PDR0"), sleeping.energy.at("PDR0")
    assert one and other and one.busy_cpus is not None and other.busy_cpus is not None
    # Whatever uses the CPUs is in it, so what power was taken for is, too.
    assert one.busy_cpus > 0.8
    for busy_cpus, watts in ((one.busy_cpus, polling_w), (other.busy_cpus, sleeping_w)):
        assert (watts - STILL_W) / EACH_CPU_W < busy_cpus + 0.1, powers
