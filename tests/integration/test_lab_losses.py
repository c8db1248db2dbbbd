"""Losses that are planted on the DUT of a lab, counted and put into words by the generator of another node."""

import json
from pathlib import Path

import pytest

from resources.libraries.python.drivers.functions.nftables.program import missing as nft_missing
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.request.cell import Cell, ServiceType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.search.losses import losses_in_words
from resources.libraries.python.testbed.deployment.cell import CellUnderTest
from tests.integration.lab import Lab
from tests.integration.lab_machine import Machine
from tests.integration.lab_runs import cell_in, needs_lab

NO_NFT = "; ".join(map(str, nft_missing()))
pytestmark = [pytest.mark.parallel, pytest.mark.root, needs_lab, pytest.mark.skipif(bool(NO_NFT), reason=NO_NFT)]
NF = ("ip", "netns", "exec", "csit-nf-1-1")
LOAD_PPS = 8000.0
"""4000 each way: 100 packets in 25 ms."""
PATTERNS = {
    "numgen inc mod 100 0": "single packets every 25 ms (1 in 100 lost)",
    "numgen inc mod 400 0-31": "bursts of 32 every 100 ms (1 in 12.5 lost)",
    "numgen random mod 50 0": "at random",
}
"""Rules of packets to drop, and the words for what is lost."""
TRIES = 5
"""A machine that stops the DUT's threads for 60 ms drops further packets: measured again then."""


def measured(made: CellUnderTest, dut: Machine, rule: str) -> tuple[TrialResult, int]:
    """A trial while the NF drops by a rule, and the number of packets that the rule dropped."""
    dut.run(*NF, "nft", f"table netdev lossy {{ chain in {{ type filter hook ingress device csn1x1i1 "
                        f"priority 0; udp dport 49190 {rule} counter drop; }}; }}")  # fmt: skip
    result = made.measure(Trial(load_pps=LOAD_PPS, duration_s=2.0, frame=frame("64B"), count_losses=True))
    listed = json.loads(dut.run(*NF, "nft", "-j", "list", "chain", "netdev", "lossy", "in"))["nftables"]
    dut.run(*NF, "nft", "delete", "table", "netdev", "lossy")
    (dropped,) = [
        part["counter"]["packets"]
        for row in listed
        for part in row.get("rule", {}).get("expr", ())
        if "counter" in part
    ]
    return result, dropped


def test_planted_losses_are_found_with_their_pattern_over_ssh(tmp_path: Path) -> None:
    cell = Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=1)
    with Lab(used=True) as lab, cell_in(lab, tmp_path, cell) as made:
        made.deploy(made.plan())
        for rule, words in PATTERNS.items():
            for _ in range(TRIES):
                result, dropped = measured(made, lab.nodes["DUT1"], rule)
                if sum(flow.lost for flow in result.losses) == dropped:
                    break
            assert sorted(flow.lost for flow in result.losses) == [0, dropped], result.losses
            assert dropped >= 80
            (lossy,) = [flow for flow in result.losses if flow.lost]
            assert words in losses_in_words(lossy), losses_in_words(lossy)
