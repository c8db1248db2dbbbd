"""A study of outages over SSH: events happen on the DUT's node while the TG's node sends, and nothing is left."""

import base64
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from resources.libraries.python.drivers.host.programs.disturbances import MOVED
from resources.libraries.python.drivers.vswitches.ovs.daemons import missing as ovs_missing
from tests.integration.lab import Lab
from tests.integration.lab_faults import STEP_FAULTS, run_losing_nodes
from tests.integration.lab_machine import Machine
from tests.integration.lab_runs import needs_lab, options, state, topology_of, wait_for_state
from tests.integration.outage_suite import check_events, study_watched
from tests.integration.robot_runs import run_robot, study_record, study_suite
from tests.integration.user_space import NO_VPP, VPP_PREFIX

pytestmark = [pytest.mark.parallel, pytest.mark.root, needs_lab]
NO_OVS = "; ".join(map(str, ovs_missing("system")))
HOLD_S = 0.2
"""How long a part is paused, as the specifications say."""
SPEC = """
name: small
instances: 2
nf_kinds: [linux_router]
frame: 64B
rate_pps: 2000
repetitions: 1
before_s: 0.5
after_s: 1
events:
  - {event: kill, target: nf-1-1}
  - {event: pause, target: nf-2-1, hold_s: 0.2}
  - {event: restart, target: vswitch}
  - {event: reload, target: nf-1-1}
"""


BEHIND = """
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int wrong = syscall(SYS_clock_gettime, clock, now);

    if (!wrong && clock == CLOCK_REALTIME)
        now->tv_sec -= 60;
    return wrong;
}
"""
INTERPRETER = """\
#!/bin/sh
exec env LD_PRELOAD=/run/behind.so python3 "$@"
"""


def clock_behind(node: Machine, folder: Path) -> dict[str, object]:
    """Settings of a node whose wall clock is a minute behind that of the others, for its agent and what that starts.

    Debian's `faketime` does that too, but with it `time.sleep` of Python fails.
    """
    (folder / "behind.c").write_text(BEHIND)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", folder / "behind.so", folder / "behind.c"], check=True)
    library = base64.b64encode((folder / "behind.so").read_bytes()).decode()
    node.run("sh", "-ec", f"echo {library} | base64 -d >/run/behind.so")
    path = "/run/python-behind"
    node.run("sh", "-ec", f"printf %s {shlex.quote(INTERPRETER)} >{path} && chmod +x {path}")
    return {"access": {"python": path}}


@pytest.mark.skipif(bool(NO_OVS), reason=NO_OVS)
def test_an_open_vswitch_is_started_again_moved_and_given_its_rules_anew_on_its_node(tmp_path: Path) -> None:
    suite = study_suite(tmp_path, "outage/routers.yaml", OF_OVS)
    with Lab(used=True) as lab:
        before = state(lab)
        rules = {"ports": "system", "openflow_rules": 100}
        topology = topology_of(lab, tmp_path, DUT1={"vswitch": "ovs", "ovs": rules})
        run_robot(tmp_path / "out", *options(topology), "-i", "ROUTERS", sources=[suite])
        wait_for_state(lab, before)
    found = study_record(tmp_path / "out").outage
    assert found is not None and found.coverage == (3, 3), found
    for effect in found.effects:  # both instances cross it
        print(f"{effect.event}, instance {effect.instance}: {effect.outage_s.mean:.3f} s")
        if effect.event == "restart vswitch":
            assert effect.recovered == 1 and effect.first_packet_s is not None and 0.05 < effect.outage_s.mean < 5
        else:
            assert effect.outage_s.mean < 0.15, effect
    assert {trial.event: trial.done for trial in found.trials} == {
        "restart vswitch": "SIGKILL, then started again",
        "reload vswitch": "100 OpenFlow rules replaced",
        "move vswitch": MOVED,
    }


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_events_happen_on_their_node_while_another_one_sends_also_when_steps_break(tmp_path: Path) -> None:
    suite = study_suite(tmp_path, "outage/routers.yaml", SPEC)
    with Lab(used=True) as lab:
        topology = topology_of(lab, tmp_path, DUT1=clock_behind(lab.nodes["DUT1"], tmp_path))
        words = (*options(topology), "-i", "ROUTERS")
        run_losing_nodes(lab, tmp_path, STEP_FAULTS, *words, sources=[suite])
    record = study_record(tmp_path / "out")
    found = record.outage
    assert record.world.value == "lab"
    assert found is not None
    assert set(found.refused) == {"reload nf-1-1"}
    assert found.coverage == (4, 4)
    effects = {(each.event, each.instance): each for each in found.effects}
    kill, pause = effects["kill nf-1-1", 1], effects["pause nf-2-1", 2]
    assert kill.recovered == 0 and 0.7 < kill.outage_s.mean < 1.3
    # The part stops a moment after the event and goes on late on a busy machine: half of the hold is certain.
    assert pause.outage_s.mean > HOLD_S / 2 and pause.recovered == 1
    assert pause.first_packet_s is not None and pause.first_packet_s.mean > HOLD_S / 2
    errors = [trial.clock_error_s for trial in found.trials if trial.event_s is not None]
    print(f"clocks compared to {1e3 * max(error or 0 for error in errors):.3f} ms")
    assert all(error and error < 0.05 for error in errors), errors
    assert "exact to" in found.notes[-1]
    for other in (effects["kill nf-1-1", 2], effects["pause nf-2-1", 1]):
        assert other.outage_s.mean < 0.5 * pause.outage_s.mean


OF_FIREWALLS = """
name: every
instances: 2
nf_kinds: [linux_firewall]
frame: 64B
rate_pps: 2000
repetitions: 1
control: false
before_s: 0.5
after_s: 0.8
quarantine_loss: 1
events:
  - {event: restart, target: nf-1-1}
  - {event: add, target: nf-1-1}
  - {event: reload, target: nf-1-1}
  - {event: move, target: nf-1-1}
  - {event: kill, target: vswitch}
  - {event: pause, target: vswitch, hold_s: 0.2}
  - {event: restart, target: vswitch}
  - {event: move, target: vswitch}
"""


def test_every_other_event_of_the_kernels_parts_happens_on_their_node(tmp_path: Path) -> None:
    with Lab(used=True) as lab:
        before = state(lab)
        words = options(topology_of(lab, tmp_path, DUT1={"containers": "linux_firewall"}))
        record, seen = study_watched(tmp_path, OF_FIREWALLS, *words, run_script=shell, every_s=0.1)
        wait_for_state(lab, before)
    assert record.outage is not None and record.outage.coverage == (8, 8), record.outage
    check_events(record, seen, most_s=0.5)
    for effect in record.outage.effects:
        if effect.event == "kill vswitch":
            assert effect.recovered == 0 and 0.7 < effect.outage_s.mean < 1
        if effect.event == "pause vswitch":  # one more packet lost at the end of the trial would be no recovery
            assert effect.first_packet_s is not None and effect.gap_s.mean > HOLD_S / 2


def shell(script: str) -> str:
    """Run a script here: the nodes' kernel is this machine's."""
    return subprocess.run(["sh", "-ec", script], check=True, capture_output=True, text=True, timeout=600).stdout


OF_OVS = """
name: small
instances: 2
nf_kinds: [linux_router]
frame: 64B
rate_pps: 1000
repetitions: 1
control: false
before_s: 0.5
after_s: 5
events:
  - {event: restart, target: vswitch}
  - {event: reload, target: vswitch}
  - {event: move, target: vswitch}
"""


OF_VPP = """
name: small
instances: 2
nf_kinds: [vpp]
frame: 64B
rate_pps: 2000
repetitions: 1
before_s: 0.5
after_s: 7
events:
  - {event: restart, target: nf-1-1}
  - {event: reload, target: nf-1-1}
  - {event: move, target: nf-1-1}
  - {event: restart, target: vswitch}
  - {event: reload, target: vswitch}
"""
"""The other end of shared memory looks every 3 s for a vSwitch that has been started again."""


@pytest.mark.skipif(bool(NO_VPP), reason=NO_VPP)
def test_a_vpp_under_load_passes_packets_again_and_replaces_its_access_list_without_loss(tmp_path: Path) -> None:
    suite = study_suite(tmp_path, "outage/routers.yaml", OF_VPP)
    dut = {"vswitch": "vpp", "containers": ["vpp"], "vpp": {"prefix": VPP_PREFIX, "acl_rules": 1000}}
    cpus = {"cpus": [{"cpus": "1", "cores": "1"}]}  # a main thread where the generator sends starts when it has ended
    with Lab(used=True) as lab:
        before = state(lab)
        topology = topology_of(lab, tmp_path, DUT1=dut | cpus)
        run_robot(tmp_path / "out", *options(topology), "-i", "ROUTERS", sources=[suite])
        wait_for_state(lab, before)
    found = study_record(tmp_path / "out").outage
    assert found is not None
    assert found.refused == {
        "move nf-1-1": "move is not possible for nf-1-1: the data threads of nf-1-1 are on CPU 1, and the plan has no "
        "other CPU on that machine"
    }
    assert found.coverage == (5, 5)
    effects = {(each.event, each.instance): each for each in found.effects}
    for target, hit in (("nf-1-1", (1,)), ("vswitch", (1, 2))):
        for instance in hit:
            restart = effects[f"restart {target}", instance]
            assert restart.recovered == 1 and restart.first_packet_s is not None
            assert 0.1 < restart.first_packet_s.mean < 6
            print(f"restart {target}: instance {instance}, first packet after {restart.first_packet_s.mean:.3f} s")
        for instance in (1, 2):
            assert effects[f"reload {target}", instance].outage_s.mean < 0.1
    assert effects["restart nf-1-1", 2].outage_s.mean < 0.5 * effects["restart nf-1-1", 1].outage_s.mean
    done_by_event = {trial.event: trial.done for trial in found.trials}
    assert done_by_event["restart vswitch"] == "SIGKILL, then started again"
    assert done_by_event["reload nf-1-1"] == "access list of 1000 rules replaced"
