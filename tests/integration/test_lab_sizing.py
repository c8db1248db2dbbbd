"""Sizing over SSH: instances on the DUT, real calls from the TG over the cable, and nothing left behind."""

import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.drivers.services.orchestrator import missing
from resources.libraries.python.errors import ConnectionFailed, Unsupported
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.service.load import load_specifications
from resources.libraries.python.studies.sizing.run import ServiceSizing, SizeTrials
from resources.libraries.python.testbed.deployment.parts import Testbed
from resources.libraries.python.testbed.roles.service import SizedService
from tests.integration.lab import Lab
from tests.integration.lab_faults import agent_is_killed, sshd_is_killed
from tests.integration.lab_runs import TG_CPUS, needs_lab, opened, state, wait_for_state
from tests.integration.machine_watch import running as processes
from tests.integration.robot_runs import SPECS, csit, csit_going_on
from tests.integration.services import groups, missing_for_instances, size, specifications
from tests.integration.sizing_suite import records, sizing_of, suite
from tests.unit.studies.sizing.sizing_runs import run_sizing

NO_PROGRAMS = "; ".join(map(str, missing()))
pytestmark = [
    pytest.mark.parallel,
    pytest.mark.root,
    needs_lab,
    pytest.mark.skipif(bool(missing_for_instances()), reason=missing_for_instances()),
]
FILES = "/var/lib/csit-density"
"""Where a node has the user's files, in a folder `service`."""
MARK = "3600.75"
STUBBORN = f"( trap '' TERM; exec sleep {MARK} ) &"
GREET = "import socket,sys; s=socket.create_connection((sys.argv[1], 7), 5); print(s.getpeername()[0])"
LISTEN = "import socket,time; s=socket.create_server(('', 7)); time.sleep(3600)"
SERVE = f"""{sys.executable} -S -c "{LISTEN}" &
until grep -q ':0007 ' /proc/net/tcp; do sleep 0.01; done"""
"""An instance that takes connections."""
LAB = {"cables": 2, "used": True}


@pytest.fixture(autouse=True)
def _nothing_left(lab: Lab) -> Iterator[None]:
    """Nodes of this lab share the machine's control groups; all else is each one's own."""
    before, groups_before = state(lab), groups()
    yield
    wait_for_state(lab, before)
    wait_until("groups as they were", lambda: "" if groups() == groups_before else str(groups()), 30)
    assert processes(MARK) == {}
    for node in lab.nodes.values():
        assert "service" not in node.run("ls", FILES).split()
        assert re.search(r"cab1\S* .*UP", node.run("ip", "-br", "link")), "the cable is where it was"


def topology(lab: Lab, folder: Path, **changes: Any) -> Path:
    return lab.topology(folder, nodes={"TG": {"cpus": TG_CPUS}, **changes})


@contextmanager
def deployed(lab: Lab, folder: Path, backs: int = 1) -> Iterator[SizedService]:
    """The service that a test has written into a folder; nobody stops it."""
    with opened(topology(lab, folder)) as world:
        asked = load_specifications(folder / "deployment.json", folder / "workload.json")
        service = world.host(asked, folder).orchestrator.service(size(backs, 1))
        service.start()
        yield service


def wait_for_processes(count: int) -> None:
    wait_until(f"{count} processes", lambda: "" if len(processes(MARK)) == count else str(processes(MARK)), 30, 0.01)


@pytest.mark.skipif(bool(NO_PROGRAMS), reason=NO_PROGRAMS)
def test_the_sip_service_is_sized_with_calls_over_the_cable_also_by_a_run_that_was_killed(
    lab: Lab, tmp_path: Path
) -> None:
    """Two sizes, two loads: calls are real, the search follows what it measured, and measures no size again."""
    deployment = json.loads((SPECS / "sip-service" / "deployment.json").read_text(encoding="utf-8"))
    workload = json.loads((SPECS / "sip-service" / "reg-dereg.json").read_text(encoding="utf-8"))
    deployment["resources"]["vcpus"] = 0.2
    # The smallest size carries the lowest load also on a machine that is not its own, and no size the highest.
    workload |= {"range": {"min": 30, "max": 1230}, "increase": 1200, "duration_s": 2}
    specs = {"deployment.json": deployment, "reg-dereg.json": workload}
    path, out = suite(tmp_path, "sip-service", specs), tmp_path / "out"
    journal = out / "characterization" / "SIP_Service" / "sizing.jsonl"
    options = ("-v", f"TOPOLOGY:{topology(lab, tmp_path)}", "-t", "SIP Service", "-d", str(out), str(path))
    with csit_going_on("robot", *options) as run:

        def first_size() -> str:
            assert run.poll() is None, run.stdout and run.stdout.read()
            return "" if len(lines(journal)) == 2 else "not yet"

        wait_until("the first size", first_size, 300)
    first = lines(journal)
    said = said_by("robot", "--resume", str(out))
    assert lines(journal)[:2] == first
    assert len(lines(journal)) == 3, "the heading and two sizes; the end is in the journal of the run"
    assert "was measured before: capacity 30 calls/s" in (out / "output.xml").read_text(encoding="utf-8"), said
    record = records(out)["SIP Service"]
    found = sizing_of(record)
    assert (record.world.value, record.simulated) == ("lab", False)
    assert record.environment.hostname == "dut1"
    assert set(record.environment.nodes) == {"TG"}
    assert found.stopped == "resources exhausted"
    assert [each.carried_over for each in found.sizes] == [True, False]
    for each in found.sizes:
        low, high = each.offered
        assert each.capacity == 30
        assert low.ratio > 0.9 > high.ratio
        # A call is three requests: each is looked up in the database, and passes two servers.
        requests_per_s = 3 * low.mean
        assert set(low.use) == {"database-1", "registrar-1", "edge-1"}
        for instance, use in low.use.items():
            assert (use.network_bps or 0) > requests_per_s * 8 * 100, instance
            assert 0 < (use.cpu or 0) < 1.3, instance
            assert 0 < (use.memory or 0) < 1, instance
    busiest = found.sizes[0].bottleneck or ""
    assert found.sizes[1].size.components[busiest].flavor == "medium"
    facts = record.facts["service"]
    assert "kamailio" in facts["registrar"]
    assert facts["load"] == "from TG over TG.port1 - DUT1.port1"
    assert len(list(journal.parent.glob("*/edge-1.csv"))) == 2


def test_the_load_comes_over_the_cable_and_a_pulled_cable_is_reported(lab: Lab, tmp_path: Path) -> None:
    """The service's scripts find what lies beside them, also on the node."""
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "factor").write_text("3")
    specifications(
        tmp_path,
        install=f'{SERVE}\necho "fact {"$CSIT_COMPONENT"} on $(uname -n)"',
        generator=f"""for each in $CSIT_ADDRESSES_BACK_END $CSIT_ADDRESSES_FRONT
do {sys.executable} -S -c "{GREET}" $each; done
echo indicator $(($(cat "$(dirname "$0")/beside/factor") * CSIT_LOAD))""",
    )
    with deployed(lab, tmp_path, 2) as service:
        before = service.use()
        assert service.offer(7).indicator == 21
        after = service.use()
        assert all((after[name].network_bytes or 0) > (before[name].network_bytes or 0) for name in before)
        assert set(after) == {"back-end-1", "back-end-2", "front-1"}
        assert service.facts()["front"] == "on dut1"
        assert service.problems() == ()
        bridge = "--net=/run/netns/csit-service-bridge"
        lab.nodes["DUT1"].run("nsenter", bridge, "ip", "link", "set", "uplink", "down")
        wait_until("a word of the cable", lambda: "" if service.problems() else "nothing is wrong", 60, 0.05)
        assert service.problems() == ("TG: the cable to the service has no carrier",)


REFUSED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (
        {"flavors": {"small": {"vcpus": 640, "memory_mb": 48}}},
        {},
        rf"^DUT1: back-end-1 needs 640 CPUs, {os.cpu_count()} available$",
    ),
    (
        {"install": f"sleep {MARK} &\necho port 5060 is taken >&2; exit 7"},
        {},
        r"^DUT1: install script of back-end-1 .*/install.sh ended with 7: port 5060 is taken$",
    ),
    (
        {"generator": f"{STUBBORN}\necho no route >&2; exit 1"},
        {},
        r"^TG: generator script .*/generator.sh ended with 1: no route$",
    ),
    (
        {"generator": "kill -KILL $$"},
        {},
        r"^TG: generator script .*/generator.sh was killed by SIGKILL: nothing was written$",
    ),
    ({"generator": "true"}, {}, r"^TG: generator script .*/generator.sh reported nothing; "),
    (
        {"needs": ["sh", "no-such-server"]},
        {},
        r"^DUT1: no-such-server missing, which the scripts of the service need; searched in /",
    ),
    (
        {},
        {"needs": ["no-such-caller"]},
        r"^TG: no-such-caller missing, which the scripts of the workload need; searched in /",
    ),
]
"""What is other in the deployment specification or its scripts, in the workload specification, and the sentence."""
NO_GROUPS = r"^DUT1: instances cannot be limited: no control group controller cpu, "


def test_what_cannot_be_measured_is_one_sentence_and_leaves_nothing(lab: Lab, tmp_path: Path) -> None:
    with opened(topology(lab, tmp_path)) as world:
        for number, (changes, workload, says) in enumerate(REFUSED):
            (folder := tmp_path / str(number)).mkdir()
            specifications(folder, **changes)
            path = folder / "workload.json"
            path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | workload), encoding="utf-8")
            assert re.search(says, why_not(world, folder))
            assert world.leftovers(None) == ()
        specifications(tmp_path)
        node = lab.nodes["DUT1"]
        node.run("mount", "-t", "tmpfs", "csit-lab", "/sys/fs/cgroup")
        try:
            assert re.search(NO_GROUPS, why_not(world, tmp_path))
        finally:
            node.run("umount", "/sys/fs/cgroup")
        assert world.leftovers(None) == ()


def why_not(world: Testbed, folder: Path) -> str:
    """What is said of the one size of a service."""
    asked = load_specifications(folder / "deployment.json", folder / "workload.json")
    try:
        host = world.host(asked, folder)
        (found,) = run_sizing(asked.deployment, asked.workload, host.orchestrator).sizes
    except Unsupported as error:
        return str(error)
    return found.failed or ""


def test_a_size_whose_node_is_lost_under_load_is_measured_once_more(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent of the DUT is killed at the first load of a size, and the TG is cut off at the second of the next."""
    sizes = [{"components": {"back-end": {"flavor": "small", "instances": count}, "front": {"flavor": "small"}}}
             for count in (1, 2)]  # fmt: skip
    specifications(tmp_path, install=f"sleep {MARK} &", sizes=sizes)
    faults = {1: lambda: agent_is_killed(lab), 6: lambda: sshd_is_killed(lab, "TG")}
    offered: list[float] = []
    offer = SizeTrials.offer

    def offer_and_break(trials: SizeTrials, service: Any, monitor: Any, load: float, repetition: int) -> Any:
        offered.append(load)
        faults.get(len(offered), lambda: None)()
        return offer(trials, service, monitor, load, repetition)

    monkeypatch.setattr(SizeTrials, "offer", offer_and_break)
    with opened(topology(lab, tmp_path)) as world:
        asked = load_specifications(tmp_path / "deployment.json", tmp_path / "workload.json")
        sizing = ServiceSizing(load_topology(topology(lab, tmp_path)), world, asked, world.environment())
        with sizing.journal()(tmp_path / "sizing.jsonl", sizing.digest()) as journal:
            sizing.resume(journal)
            found = sizing.run()
    assert offered == [10, 10, 20, 30, 10, 20, 10, 20, 30], sizing.notes
    assert [(row.failed, row.capacity) for row in found.sizes] == [(None, 30), (None, 30)], sizing.notes


def test_what_killed_agents_left_is_listed_and_cleaned_up(lab: Lab, tmp_path: Path) -> None:
    specifications(tmp_path, install=STUBBORN)
    path = str(topology(lab, tmp_path))
    with deployed(lab, tmp_path) as service:
        wait_for_processes(2)
        for name in lab.nodes:
            agent_is_killed(lab, name)
        for ask in (service.use, partial(service.offer, 10.0)):  # of the DUT, and of the TG: both know it afterwards
            with pytest.raises(ConnectionFailed):
                ask()
    wait_for_processes(0)  # scripts and what they started end with the agent
    listed = said_by("cleanup", path)
    for what in (
        "DUT1: network namespace csit-front-1", "DUT1: folder /var/lib/csit-density/service", "DUT1: control group ",
        "DUT1: port in use: ", "TG: network namespace csit-service-load", "TG: port in use: ",
    ):  # fmt: skip
        assert what in listed, listed
    removed = said_by("cleanup", path, "--yes")
    assert "DUT1: removed folder /var/lib/csit-density/service" in removed
    assert "killed process" not in removed


def test_agents_that_are_let_go_remove_the_service(lab: Lab, tmp_path: Path) -> None:
    """As when a run is killed: nobody says that it is to be stopped."""
    specifications(tmp_path, install=f"sleep {MARK} &")
    with deployed(lab, tmp_path):
        wait_for_processes(2)


def said_by(*words: str) -> str:
    done = csit(*words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def lines(journal: Path) -> list[str]:
    """Those that are complete, the heading included."""
    text = journal.read_text(encoding="utf-8") if journal.exists() else ""
    return [line for line in text.splitlines(keepends=True) if line.endswith("\n")]
