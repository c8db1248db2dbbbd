"""A study of stateful density on machines with PCI NICs; the kernel's own count of connections is the witness."""

import time
from pathlib import Path

import pytest

from csit_utils.dataset.load import load
from resources.libraries.python.errors import CommandFailed
from tests.integration.emulated import Emulated
from tests.integration.robot_runs import going_on, study_suite
from tests.realtime import LOSS, realtime

pytestmark = [pytest.mark.root, pytest.mark.emulated]
SPEC = """
name: emulated
kind: linux_nat
instances: [1]
frame: 64B
search: quick,width=0.5,trial=0.5,sum=0.5,time=90
tear_downs: 1
connections: 300
capacity: false
"""
COUNT = "ip netns exec csit-nf-1-1 cat /proc/sys/net/netfilter/nf_conntrack_count"
_WITHIN_S = 600.0


@realtime(LOSS)
def test_connections_are_those_that_the_kernel_counts(emulated: Emulated, tmp_path: Path) -> None:
    suite = study_suite(tmp_path, "stateful/nat.yaml", SPEC)
    nodes = {"TG": {"generator": {"driver": "ring", "cores": 1}}, "DUT1": {"containers": "linux_nat"}}
    topology = emulated.write_topology(tmp_path, nodes=nodes)
    words, most = ("-v", f"TOPOLOGY:{topology}", "-i", "NAT"), 0
    with going_on(tmp_path / "out", *words, sources=[suite]) as run:
        deadline = time.monotonic() + _WITHIN_S
        while run.poll() is None:
            assert time.monotonic() < deadline, f"the study has not ended within {_WITHIN_S:g} s"
            most = max(most, entries(emulated))
        said, _ = run.communicate(timeout=_WITHIN_S)
    assert run.returncode == 0, said
    record = load([tmp_path / "out" / "output.xml"]).characterizations[0].record
    (found,) = record.stateful.cells
    assert found.rate.lower_cps > 0
    # An emulated generator falls short by some; those that it has made are torn down.
    (made,) = [each.sent for each in found.trials[-1].instances]
    assert 200 < made <= 300 and [each.entries for each in found.tear_downs] == [(made,)]
    # Between the trials its table is cleared: the kernel never has more than one of them has made.
    counted = [instance.entries for trial in found.trials for instance in trial.instances]
    print(f"at most {most} in the kernel, {max(counted)} in a trial, {found.rate.lower_cps:.0f} new ones per second")
    assert 0 < most <= max(counted)


def entries(emulated: Emulated) -> int:
    """Connections in the table of the NF; 0 without it."""
    try:
        return int(emulated.shell("DUT1", COUNT))
    except CommandFailed:
        return 0
