"""A study of outages on machines with PCI NICs: events on the DUT by its clock, while the TG sends over the cables.

The other events of the kernel's parts are tried in the lab of test_lab_outage.py, where a trial takes a second.
"""

from functools import partial
from pathlib import Path

import pytest

from tests.integration.emulated import RING, Emulated
from tests.integration.outage_suite import check_events, study_watched

pytestmark = [pytest.mark.root, pytest.mark.emulated]
SPEC = """
name: emulated
instances: 2
nf_kinds: [linux_firewall]
frame: 64B
rate_pps: 100
repetitions: 1
control: false
before_s: 2
after_s: 3
quarantine_loss: 1
events:
  - {event: kill, target: nf-1-1}
  - {event: pause, target: nf-2-1, hold_s: 1}
  - {event: move, target: nf-1-1}
  - {event: restart, target: vswitch}
"""
RATE_PPS = 100


def test_events_on_one_machine_are_timed_by_packets_of_another_one(emulated: Emulated, tmp_path: Path) -> None:
    topology = emulated.write_topology(tmp_path, discriminator="vlan", nodes={"TG": RING})
    shell = partial(emulated.shell, "DUT1")
    record, seen = study_watched(tmp_path, SPEC, "-v", f"TOPOLOGY:{topology}", run_script=shell, every_s=2)
    found = record.outage
    assert found is not None and found.coverage == (4, 4)
    assert record.plan is not None
    assert {port.nic.port for port in record.plan.ports() if port.nic} == {"port1", "port2"}
    effects = {(each.event, each.instance): each for each in found.effects}
    kill, pause = effects["kill nf-1-1", 1], effects["pause nf-2-1", 2]
    for effect in (kill, pause):
        print(f"{effect.event}: {effect.lost.mean:.0f} lost in {effect.outage_s.mean:.3f} s")
    trial = next(each for each in found.trials if each.event == kill.event)
    before_s = next(-each.begin_s for each in trial.traces if each.instance == kill.instance)
    left_s = found.spec.duration_s - before_s
    print(f"{kill.event}: {before_s:.3f} s after the first packet, in {trial.event_s} s")
    # The load begins up to a second late, but the outage lasts from the event to the end of the load.
    assert before_s == pytest.approx(found.spec.before_s, abs=1.5)
    assert trial.event_s is not None and left_s - trial.event_s - 0.3 < kill.outage_s.mean < left_s + 0.3
    assert kill.recovered == 0
    assert kill.lost.mean == pytest.approx(2 * RATE_PPS * kill.outage_s.mean, rel=0.2)
    assert pause.recovered == 1 and 0.9 < pause.outage_s.mean < 2
    assert pause.first_packet_s is not None and 0.9 < pause.first_packet_s.mean < 2.5
    check_events(record, seen, 0.5 * pause.outage_s.mean)
