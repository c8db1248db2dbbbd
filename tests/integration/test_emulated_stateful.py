"""A study of stateful density on machines with PCI NICs; the kernel's own count of connections is the witness."""

from contextlib import closing
from pathlib import Path

import pytest

from tests.integration.emulated import RING, Emulated
from tests.integration.robot_runs import going_on, study_record, study_suite

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
COUNT = """
while read -r -t 0.5; [ $? -gt 128 ]; do
    ip netns exec csit-nf-1-1 cat /proc/sys/net/netfilter/nf_conntrack_count 2>/dev/null
done
"""
"""Until it is sent a line: connections in the table of the NF while there is one. A session for each count would take a
fifth of the CPU time of an emulated machine."""
_WITHIN_S = 600.0


def test_connections_are_those_that_the_kernel_counts(emulated: Emulated, tmp_path: Path) -> None:
    suite = study_suite(tmp_path, "stateful/nat.yaml", SPEC)
    nodes = {"TG": RING, "DUT1": {"containers": "linux_nat"}}
    topology = emulated.write_topology(tmp_path, nodes=nodes)
    with (
        closing(emulated.nodes["DUT1"].open(["bash", "-c", COUNT])) as counting,
        going_on(tmp_path / "out", "-v", f"TOPOLOGY:{topology}", "-i", "NAT", sources=[suite]) as run,
    ):
        said, _ = run.communicate(timeout=_WITHIN_S)
        assert run.returncode == 0, said
        counting.send(b"\n")
        most = max(map(int, b"".join(iter(lambda: counting.receive(_WITHIN_S), b"")).split()), default=0)
    record = study_record(tmp_path / "out")
    (found,) = record.stateful.cells
    assert found.rate.lower_cps > 0
    # An emulated generator falls short by some; those that it has made are torn down.
    (made,) = [each.sent for each in found.trials[-1].instances]
    assert 200 < made <= 300 and [each.entries for each in found.tear_downs] == [(made,)]
    # Between the trials its table is cleared: the kernel never has more than one of them has made.
    counted = [instance.entries for trial in found.trials for instance in trial.instances]
    print(f"at most {most} in the kernel, {max(counted)} in a trial, {found.rate.lower_cps:.0f} new ones per second")
    assert 0 < most <= max(counted)
