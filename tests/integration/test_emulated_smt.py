"""SMT of an emulated machine, whose kernel switches it: off for a sweep on PCI ports, on again, also after a kill."""

import signal
from pathlib import Path

import pytest

from resources.libraries.python.drivers.host.programs.waiting import wait_until
from tests.integration.emulated import RING, Emulated
from tests.integration.robot_runs import PROJECT, going_on, run_robot
from tests.loaded import load

pytestmark = [pytest.mark.root, pytest.mark.emulated]
SUITE = PROJECT / "tests" / "characterization" / "smt.robot"
SMT = "cat /sys/devices/system/cpu/smt/control /sys/devices/system/cpu/online; cat /run/csit-density/owner.json || true"
"""State of SMT, CPUs that are online, and what a run has on record."""
FEW = ("-v", "SWEEP_RATES:100-300/100", "-v", "SWEEP_DURATION:1", "-v", "SWEEP_WIDTH:off", "-v", "NOISE_FLOOR:0.1")
WITHIN_S = 300.0


def test_smt_is_off_for_a_sweep_and_on_after_it_and_after_a_kill(emulated: Emulated, tmp_path: Path) -> None:
    before = emulated.shell("DUT1", SMT)
    assert before.startswith("on\n"), "the machine of QEMU has two threads on each core"
    words = ("-v", f"TOPOLOGY:{emulated.write_topology(tmp_path, nodes={'TG': RING})}", *FEW)

    def is_off() -> str:
        seen = emulated.shell("DUT1", SMT)
        return "" if seen.startswith("off\n") and '"smt"' in seen else seen

    def is_back() -> str:
        seen = emulated.shell("DUT1", SMT)
        return "" if seen == before else seen

    with going_on(tmp_path / "killed", *words, "--test", "Service Without SMT", sources=[SUITE]) as run:
        wait_until("SMT off and on record", is_off, WITHIN_S, pause_s=0.5)
        run.send_signal(signal.SIGKILL)
        run.communicate(timeout=600)
    # The agent ends with its connection, and gives back what it has on record.
    wait_until("SMT as it was", is_back, WITHIN_S, pause_s=1.0)
    output = tmp_path / "whole"
    run_robot(output, *words, sources=[SUITE])
    assert is_back() == ""
    found = {item.record.test_name: item.record for item in load([output / "output.xml"]).characterizations}
    on, off = (found[f"Service {word} SMT"] for word in ("With", "Without"))
    assert (on.message, off.message) == ("", ""), "neither was skipped"
    assert (on.smt_off, off.smt_off) == (False, True)
    assert on.plan is not None and off.plan is not None
    assert (on.plan.cores.smt, off.plan.cores.smt) == (True, False)
    # What was planned for one thread of each core really ran there: each VNF is accounted for.
    assert all(point.cpu["nf-1-1"] for point in off.sweep.points)
