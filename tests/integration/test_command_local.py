"""`./csit local`: from nothing to a page, and one sentence for everything that can be wrong before it starts."""

import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

import pytest

from csit_utils.commands.runs.local import CELLS, MORE_THAN_ONE_VM
from tests.integration.preloaded import PreloadedRun
from tests.integration.robot_runs import (
    PROJECT,
    csit,
    environment,
    network_state,
    results,
    run_robot,
    wait_for_network_state,
    wait_for_traffic,
)

pytestmark = [pytest.mark.parallel, pytest.mark.root]
SMALL = ("--types", "CSP", "--cells", "1x1", "--search", "quick,width=0.2,sum=0.6,latency=0.4")


def test_it_ends_with_a_table_and_a_page(tmp_path: Path) -> None:
    before = network_state()
    done = csit("local", *SMALL, "--output", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    wait_for_network_state(before)
    (row,) = results(tmp_path)
    lines = done.stdout.splitlines()
    assert any(line.startswith("CSP 1x1 NF-1c\t64B\t") for line in lines)
    page = tmp_path / "density.html"
    assert lines[-1] == f"report: {page}"
    assert row.test_name in page.read_text(encoding="utf-8")
    assert {path.name for path in (tmp_path / "csv").iterdir()} >= {"tests.csv", "latency.csv", "trials.csv"}


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_stopped_in_a_trial_it_cleans_up_and_still_reports(tmp_path: Path, ending: signal.Signals) -> None:
    before = network_state()
    options = (*SMALL, "--search", "quick,sum=300,time=600", "--output", str(tmp_path))  # until it is stopped
    with PreloadedRun(
        [sys.executable, "-m", "csit_utils", "local", *options],
        cwd=PROJECT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as run:  # fmt: skip
        wait_for_traffic()
        run.send_signal(ending)
        stdout, _ = run.communicate(timeout=600)
    assert run.returncode != 0
    wait_for_network_state(before)
    assert (tmp_path / "density.html").exists()
    assert "failed" in stdout


def test_by_default_all_service_types_are_measured_and_of_vms_the_smallest_cell(tmp_path: Path) -> None:
    """The choice that the command hands to Robot, with the rows that Robot then makes of it."""
    options = ["--dryrun", "-v", "TOPOLOGY:topologies/local.yaml", "-v", "NF_SIZES:1c", "-v", f"CELLS:{CELLS}"]
    options += [word for kind in ("vsc", "csc", "csp") for word in ("--suite", f"{kind}-ndrpdr")]
    run_robot(tmp_path, *options, "--exclude", MORE_THAN_ONE_VM)
    rows = ET.parse(tmp_path / "output.xml").iter("test")  # noqa: S314 - of our own making
    cells = Counter((row.findtext("tag[.='VSC']") or "other", row.findtext("tag[.='1R1C']") or "more") for row in rows)
    assert cells == {("VSC", "1R1C"): 1, ("other", "1R1C"): 2, ("other", "more"): 4}
    assert "VSC,CSC,CSP" in csit("local", "--help").stdout
