"""Call stacks of real packets: perf runs, and the difference of two runs names the function that grew."""

import json
import re
from pathlib import Path

import pytest

from resources.libraries.python.drivers.functions.nftables.program import missing
from resources.libraries.python.drivers.probes.call_stacks import why_unsampled
from resources.libraries.python.drivers.vswitches.ovs.daemons import missing as ovs_missing
from resources.libraries.python.studies.density.model import DensityRecord
from tests.integration.robot_runs import LOCAL, PROJECT, csit, results, run_robot, small_suite, variables
from tests.integration.user_space import NO_VPP, VPP_PREFIX

NO_OVS = "; ".join(map(str, ovs_missing("auto")))
NO_NFT, NO_PERF = "; ".join(map(str, missing())), str(why_unsampled() or "")
pytestmark = [
    pytest.mark.root,
    pytest.mark.parallel,
    pytest.mark.skipif(bool(NO_NFT or NO_PERF), reason=NO_NFT or NO_PERF),
]


CHAINS = """
name: small
vnfs:
  - {name: router, kind: linux_router}
  - {name: nat, kind: linux_nat}
lengths: [2]
workloads: {protocols: [UDP], volumes_mbps: [40], sessions: [4], frames: [64B]}
duration_s: 1
faults:
  - {chain: [nat, router], vnf: nat, limits: {cpu: 0.05}}
"""


def run(output: Path, topology: Path, *choices: str) -> DensityRecord:
    """Measure a cell and sample its stacks."""
    search = "SEARCH:quick,width=0.2,sum=0.3,latency=0.2"
    options = variables(f"TOPOLOGY:{topology}", "CELLS:1x1", "NF_SIZES:1c", search, "STACKS:2", *choices)
    run_robot(output, *options, "--suite", "csc-ndrpdr", seconds=240)
    (record,) = results(output)
    return record


def filtering(folder: Path, rules: int) -> Path:
    """Measure a firewall with so many rules; return its output.xml."""
    text = (PROJECT / "topologies" / "local.yaml").read_text(encoding="utf-8")
    file = folder / f"rules-{rules}.yaml"
    file.write_text(re.sub(r"firewall: \{rules: \d+\}", f"firewall: {{rules: {rules}}}", text), encoding="utf-8")
    output = folder / f"rules-{rules}"
    record = run(output, file, "NF_KINDS:linux_firewall")
    assert record.stacks is not None, record.warnings
    (node,) = record.stacks.nodes
    assert node.event in ("cycles", "cpu-clock") and node.sampled_s > 1.9
    assert record.stacks.total > 50 and node.samples >= record.stacks.total + node.idle + node.elsewhere
    owners = {stack.partition(";")[0] for stack in node.stacks}
    assert {"nf-1-1", "vswitch"} <= owners <= {"nf-1-1", "vswitch", "softirq"}
    assert any("br_handle_frame" in stack for stack in node.stacks if stack.startswith("vswitch;"))
    return output / "output.xml"


def test_the_function_that_grew_with_the_rules_is_named(tmp_path: Path) -> None:
    few, many = filtering(tmp_path, 1), filtering(tmp_path, 3000)
    done = csit("why", str(few), str(many), "--format", "json", "--folded", str(tmp_path / "both.folded"))
    assert done.returncode == 0, done.stderr
    rows = {row["function"]: row for row in map(json.loads, done.stdout.splitlines()) if row["part"] == "nf-1-1"}
    grew = [name for name, row in rows.items() if row["significant"] and row["difference"] > 0]
    assert "nft_do_chain" in grew
    row = rows["nft_do_chain"]
    assert row["share_b"] > 0.3 > row["share_a"] and row["ns_per_packet_b"] > 5 * row["ns_per_packet_a"]
    assert any(";nft_do_chain" in line for line in (tmp_path / "both.folded").read_text(encoding="utf-8").splitlines())


def test_a_suspect_chain_is_compared_with_the_other_order_per_packet(tmp_path: Path) -> None:
    suite = small_suite(tmp_path, "chains", CHAINS)
    done = run_robot(tmp_path / "out", *LOCAL, "-v", "STACKS:3", sources=[suite], seconds=240)
    assert "call stacks: " in done.stdout and "not sampled" not in done.stdout
    found = csit("why", str(tmp_path / "out"), "--cell", "nat > router beside", "--format", "json")
    assert found.returncode == 0, found.stderr
    rows = [json.loads(line) for line in found.stdout.splitlines()]
    # Most packets are dropped at the NAT, which has no time: what forwards them to it does so for few that come back.
    (row,) = [row for row in rows if row["part"] == "vswitch" and row["function"] == "br_handle_frame"]
    assert row["significant"] and row["ns_per_packet_b"] > 2 * row["ns_per_packet_a"]
    assert {row["part"] for row in rows} <= {"nat", "router", "vswitch", "softirq"}
    assert "times are per packet that came back" in found.stderr


@pytest.mark.skipif(bool(NO_OVS), reason=NO_OVS)
def test_open_vswitch_counts_its_own_work_in_the_same_trial(tmp_path: Path) -> None:
    record = run(tmp_path / "ovs", PROJECT / "topologies" / "local-ovs.yaml")
    assert record.stacks is not None, record.warnings
    assert record.costs is not None
    for costs in (record.stacks.costs, record.costs):
        # Set to zero right before the trial: what was forwarded in it, and not in the search.
        rows = [row for row in costs.nodes if row.node == "processing"]
        assert {row.part for row in rows} == {"vswitch"} and all(row.cost for row in rows)
        assert costs.received / 2 < sum(row.packets for row in rows) < 20 * costs.received
    assert any(row.unit == "ns" for row in record.costs.nodes), "stages of the kernel, which the stacks show"
    assert any(stack.startswith("vswitch;pmd-c") for stack in record.stacks.counts)


@pytest.mark.skipif(bool(NO_VPP), reason=NO_VPP)
def test_vpp_counts_its_own_work_in_the_same_trial(tmp_path: Path) -> None:
    text = (PROJECT / "topologies" / "local-vpp.yaml").read_text(encoding="utf-8")
    file = tmp_path / "local-vpp.yaml"
    file.write_text(text.replace("prefix: /usr ", f"prefix: {VPP_PREFIX} "), encoding="utf-8")
    record = run(tmp_path / "vpp", file)
    assert record.stacks is not None, record.warnings
    assert record.costs is not None
    for costs in (record.stacks.costs, record.costs):
        # Cleared right before the trial: both directions pass the bridge domain on the way to the NF and back.
        (learned,) = [row for row in costs.by_node(100) if (row.part, row.node) == ("vswitch", "l2-learn")]
        assert costs.received < learned.packets < 3 * costs.received and learned.cost
    owners = {stack.partition(";")[0] for stack in record.stacks.counts}
    assert {"nf-1-1", "vswitch"} <= owners
