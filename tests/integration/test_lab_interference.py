"""A study of interference over SSH: what NFs of a node have processed and used is told by its agent."""

from pathlib import Path

import pytest

from resources.libraries.python.drivers.functions.nftables.program import missing as nft_missing
from resources.libraries.python.drivers.host.programs.program_output import path_of
from tests.integration.lab import Lab
from tests.integration.lab_faults import STEP_FAULTS, nf_loses_its_port, run_losing_nodes
from tests.integration.lab_runs import needs_lab, options, topology_of
from tests.integration.pauses import STEPS, Moment
from tests.integration.robot_runs import small_suite, study_record

MISSING = "; ".join(map(str, nft_missing())) or ("" if path_of("tcpdump") else "tcpdump is missing")
pytestmark = [pytest.mark.parallel, pytest.mark.root, needs_lab, pytest.mark.skipif(bool(MISSING), reason=MISSING)]
SPEC = """
name: small
frame: 512B
duration_s: 0.3
repetitions: 1
load_pps: 20000
contenders:
  - {name: gateway, type: I, kind: linux_gateway}
  - {name: monitor, type: II, kind: tcpdump}
"""
FAULTS = (*STEP_FAULTS, (Moment(STEPS, call=7, after=True), nf_loses_its_port))
"""In four of the six measurements."""


def test_a_node_reports_what_its_nfs_have_processed_and_used_also_when_steps_break(tmp_path: Path) -> None:
    with Lab(used=True) as lab:
        kinds = ["linux_router", "linux_gateway", "tcpdump"]
        topology = topology_of(lab, tmp_path, DUT1={"containers": kinds})
        suite = small_suite(tmp_path, "interference", SPEC)
        run_losing_nodes(lab, tmp_path, FAULTS, *options(topology), sources=[suite])
    record = study_record(tmp_path / "out")
    found = record.interference
    assert record.world.value == "lab"
    assert found is not None
    assert [(row.target, row.against) for row in found.matrix] == [
        (one, (other,)) for one in ("gateway", "monitor") for other in ("gateway", "monitor")
    ]
    for each in found.measurements:
        assert 100 < each.throughput_pps < 1.05 * 20_000
        assert each.cpu and 0.001 < each.cpu < 2.2
        assert bool(each.memory_bytes) is (each.target == "monitor"), "a gateway is in the kernel"
