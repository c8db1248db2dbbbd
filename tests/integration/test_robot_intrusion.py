"""Intrusion detection, sized: Suricata's statistics count all packets and hits of the rule, passive and inline."""

import json
import shutil
from pathlib import Path

import pytest

from tests.integration.robot_runs import LOCAL, SPECS, network_state, run_robot, wait_for_network_state
from tests.integration.services import groups, missing_for_instances
from tests.integration.sizing_suite import SUITE, records, sizing_of, suite

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(bool(missing_for_instances()), reason=missing_for_instances()),
    pytest.mark.skipif(shutil.which("suricata") is None, reason="suricata is not installed"),
]


@pytest.mark.parametrize(("name", "workers"), [("Suricata IDS Malicious 25", "1"), ("Suricata IPS Malicious 75", "2")])
def test_the_rule_hits_what_is_malicious_and_an_inline_one_drops_it(tmp_path: Path, name: str, workers: str) -> None:
    before = network_state(), groups()
    deployment = json.loads((SPECS / "ids" / "deployment.json").read_text(encoding="utf-8"))
    workload = json.loads((SPECS / "ids" / "udp-64b.json").read_text(encoding="utf-8"))
    deployment["sizes"] = [{"components": {"ids": {"flavor": "large"}}}]
    deployment["options"]["workers"]["value"] = workers
    workload |= {"range": {"min": 2, "max": 6}, "increase": 4, "duration_s": 1}
    path = suite(tmp_path, "ids", {"deployment.json": deployment, "udp-64b.json": workload})
    run_robot(tmp_path / "out", *LOCAL, "-v", "MORE:yes", "-t", name, sources=[path], seconds=120)
    wait_for_network_state(before[0])
    assert groups() == before[1]
    record = records(tmp_path / "out")[name]
    share, inline = int(name.rsplit(maxsplit=1)[1]) / 100, "IPS" in name
    (size,) = sizing_of(record).sizes
    assert [row.load for row in size.offered] == [2, 6]
    for row in size.offered:
        found = row.figures
        assert found["malicious"] == pytest.approx(1000 * share * row.load, rel=0.05)
        # Every packet is inspected or counted as missed, and hits are of those that were inspected.
        assert found["offered"] == pytest.approx(row.mean + found["missed"] / 1000, rel=0.02)
        assert found["hits"] <= found["malicious"]
        assert found["hits"] >= found["malicious"] - found["missed"]
        assert found["detected"] == pytest.approx(found["hits"] / found["malicious"], abs=1e-3)
        assert found["blocked"] == (found["hits"] if inline else 0)
    assert size.capacity == 6
    assert "figure_detected" in next((tmp_path / "out").rglob("sizing.csv")).read_text(encoding="utf-8").splitlines()[0]
    mode = "ips" if inline else "ids"
    assert f"{mode} mode, workers: {workers}, rules: 1000" in record.facts["service"]["ids"]


def test_snort_is_skipped_where_it_is_not_installed(tmp_path: Path) -> None:
    if shutil.which("snort") is not None:
        pytest.skip("snort is installed")
    done = run_robot(tmp_path, *LOCAL, "-t", "Snort IDS Malicious 50", sources=[SUITE], seconds=120, check=False)
    assert "snort missing, which the scripts of the service need" in done.stdout
