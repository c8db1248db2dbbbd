"""Tunnels of the kernel as NFs, on machines whose kernel has WireGuard and ESP; its own counters are the witness."""

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.integration.emulated import RING, Emulated
from tests.integration.pauses import REMOVING, Moment, Paused
from tests.integration.robot_runs import going_on, results

pytestmark = [pytest.mark.root, pytest.mark.emulated]
_WITHIN_S = 600.0
COUNTERS = """
ip netns exec csit-nf-1-1 wg show all transfer
ip -n csit-nf-1-1 -s xfrm state
ip netns exec csit-nf-1-1 cat /proc/net/xfrm_stat
"""
"""In the network namespace of the NF: bytes of WireGuard's peers, packets of the security associations, and errors."""


def test_packets_are_encrypted_by_the_kernel(emulated: Emulated, tmp_path: Path) -> None:
    kinds = ["wireguard", "ipsec"]
    topology = emulated.write_topology(tmp_path, nodes={"TG": RING, "DUT1": {"containers": kinds}})
    words = (
        f"TOPOLOGY:{topology}", "CELLS:1x1", "NF_SIZES:1c", f"NF_KINDS:{','.join(kinds)}", "FRAMES:128B",
        "SEARCH:quick,sum=1,mrr=1,time=10",
    )  # fmt: skip
    options = [word for value in words for word in ("-v", value)]
    moments = [Moment(REMOVING, f"CSC 1R1C NF-1c vSwitch-1c {kind} 128B", attempt=1) for kind in kinds]
    most, paused = Counter[str](), Paused(tmp_path, moments)
    with going_on(tmp_path / "out", *options, "--suite", "csc-mrr", *paused.options) as run:
        for moment in moments:
            with paused.at(moment, run, _WITHIN_S):
                most |= counted(emulated)
        said, _ = run.communicate(timeout=_WITHIN_S)
    assert run.returncode == 0, said
    rows = {row.asked.cell.nf_kinds[0]: row for row in results(tmp_path / "out")}
    kernel = emulated.run("DUT1", "uname", "-r").strip()
    for kind, cipher in zip(kinds, ("ChaCha20-Poly1305", "AES-128-GCM"), strict=True):
        row = rows[kind]
        assert row.mrr and row.mrr.mean_pps > 0, said
        fact = row.facts["functions"][kind]
        assert fact.startswith(f"Linux {kernel} in the kernel, ")
        assert cipher in fact
    # Either end of WireGuard, and either security association; none of IPsec's packets was refused.
    assert len([name for name, count in most.items() if name.startswith("nf-1-1-wg") and count > 10_000]) == 2, most
    assert most["spi 0x00001001"] > 100 < most["spi 0x00001002"], most
    assert not [name for name in most if name.startswith("Xfrm")], most


def counted(emulated: Emulated) -> Counter[str]:
    """Bytes that an end of WireGuard received, packets of a security association, errors."""
    text = emulated.shell("DUT1", COUNTERS)
    found = Counter({line.split()[0]: int(line.split()[2]) for line in text.splitlines() if line.startswith("nf-")})
    for state in re.split(r"(?m)^src ", text)[1:]:
        spi, packets = re.search(r"spi (0x[0-9a-f]+)", state), re.search(r"(\d+)\(packets\)", state)
        if spi and packets:
            found[f"spi {spi[1]}"] = int(packets[1])
    found.update({name: int(number) for name, number in re.findall(r"^(Xfrm\w+)\s+(\d+)$", text, re.M) if int(number)})
    return found
