"""Instances on this machine: limited, addressed, brought up by scripts, and nothing of them left behind."""

import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from resources.libraries.python.drivers.host.cpu.cpu import discover
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.drivers.services import instances
from resources.libraries.python.drivers.services.instances import Instances
from resources.libraries.python.drivers.services.orchestrator import LocalOrchestrator
from resources.libraries.python.errors import CommandFailed, CsitError, NotReady
from resources.libraries.python.model.service.load import Specifications
from tests.integration.machine_watch import running as processes
from tests.integration.robot_runs import network_state, wait_for_network_state
from tests.integration.services import (
    IDLE,
    groups,
    missing_for_instances,
    running,
    service_of,
    size,
    specifications,
)
from tests.integration.traffic import machine
from tests.integration.user_space import victim
from tests.unit.studies.sizing.sizing_runs import run_sizing

pytestmark = [
    pytest.mark.parallel,
    pytest.mark.root,
    pytest.mark.skipif(bool(missing_for_instances()), reason=missing_for_instances()),
]
BURN = "( while :; do :; done ) &"
MARK = "3600.25"
"""An argument of `sleep` by which a test finds its processes."""
STUBBORN = f"( trap '' TERM; exec sleep {MARK} ) &"


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    before = network_state(), groups()
    yield
    wait_for_network_state(before[0])
    assert groups() == before[1]
    assert processes(MARK) == {}


def test_scripts_get_their_identity_and_the_addresses_of_the_others(tmp_path: Path) -> None:
    said = tmp_path / "said"
    said.mkdir()
    specs = specifications(
        tmp_path,
        install=f'env | grep ^CSIT_ | sort >{said}/$CSIT_COMPONENT-$CSIT_INSTANCE; test "$PWD" = "$CSIT_FOLDER"',
        generator=f"env | grep ^CSIT_ | sort >{said}/load; echo indicator 1",
    )
    with running(specs, size(2, 1)) as service:
        service.offer(12.5)
    told = {path.name: dict(line.split("=", 1) for line in path.read_text().splitlines()) for path in said.iterdir()}
    everybody = {"CSIT_ADDRESSES_BACK_END": "198.18.1.1 198.18.1.2", "CSIT_ADDRESSES_FRONT": "198.18.2.1"}
    folder = told["back-end-2"].pop("CSIT_FOLDER")
    assert told["back-end-2"] == {
        "CSIT_COMPONENT": "back-end",
        "CSIT_INSTANCE": "2",
        "CSIT_ADDRESS": "198.18.1.2",
        "CSIT_FLAVOR": "small",
        "CSIT_FLAVOR_VCPUS": "0.2",
        "CSIT_MEMORY_MB": "48",
        **everybody,
    }
    assert told["load"].items() >= {"CSIT_LOAD": "12.5", "CSIT_DURATION_S": "0.2", **everybody}.items()
    assert folder != told["front-1"]["CSIT_FOLDER"]
    assert not Path(folder).exists()


def test_components_come_up_in_their_order_and_reach_each_other(tmp_path: Path) -> None:
    """Each instance greets those before it over the bridge, which have been listening since."""
    greet = "import socket,sys; socket.create_connection((sys.argv[1], 7), 5).close()"
    listen = "import socket,time; s=socket.create_server(('', 7)); time.sleep(3600)"
    ready = "until grep -q ':0007 ' /proc/net/tcp; do sleep 0.01; done"
    install = f"""
    if [ $CSIT_COMPONENT = front ]; then
        for address in $CSIT_ADDRESSES_BACK_END; do {sys.executable} -S -c "{greet}" $address; done
    else
        {sys.executable} -S -c "{listen}" & {ready}
    fi"""
    with running(specifications(tmp_path, install=install), size(2, 2)) as service:
        use = service.use()
        assert all((row.network_bytes or 0) > 100 for row in use.values()), use


def test_an_instance_gets_the_cpu_time_of_its_flavor_and_no_more(tmp_path: Path) -> None:
    with running(specifications(tmp_path, install=BURN)) as service:
        for _ in range(5):
            before, begin = service.use(), time.monotonic()
            time.sleep(1.5)
            after, seconds = service.use(), time.monotonic() - begin
            used = [((after[name].cpu_s or 0) - (before[name].cpu_s or 0)) / seconds for name in before]
            assert max(used) < 0.2 * 1.15, "more only by a period that had begun"
            if min(used) > 0.1:  # less where others use the machine as well
                break
        assert min(used) > 0.1, used


def test_a_pinned_instance_runs_on_its_cpu_only(tmp_path: Path) -> None:
    specs = specifications(tmp_path, install=f"sleep {MARK} &", servers={"core_pinning": True})
    with running(specs) as service:
        wait_until("sleep of both", lambda: "" if len(processes(MARK)) == 2 else str(processes(MARK)), 60.0)
        allowed = [os.sched_getaffinity(pid) for pid in processes(MARK)]
        cpus = sorted(row.cpu for row in discover().cpus)[:2]
        assert sorted(map(sorted, allowed)) == [[cpu] for cpu in (cpus if len(cpus) > 1 else cpus * 2)]
        assert set(re.findall(r"=(\d+)", service.facts()["pinning"])) == set(map(str, cpus))


def test_an_instance_that_uses_up_its_memory_is_named(tmp_path: Path) -> None:
    eat = f"{sys.executable} -S -c 'x = bytearray(200 << 20)' || true; {IDLE}"
    with running(specifications(tmp_path, install=eat)) as service:
        assert service.problems()[0] == "back-end-1 used up its 48 MB: the kernel killed 1 of its processes"


def test_an_instance_whose_processes_have_ended_is_named(tmp_path: Path) -> None:
    with running(specifications(tmp_path, install=f"sleep {MARK} &")) as service:
        assert service.problems() == ()
        # A script has ended when it has forked: the child is found by its name as soon as it has become `sleep`.
        wait_until("sleep of both", lambda: "" if len(processes(MARK)) == 2 else str(processes(MARK)), 60.0)
        for pid in processes(MARK):
            os.kill(pid, signal.SIGKILL)
        wait_until("their end", lambda: "" if len(service.problems()) == 2 else str(service.problems()), 60.0, 0.01)
        assert service.problems() == ("all processes of back-end-1 have ended", "all processes of front-1 have ended")


@pytest.mark.parametrize(
    ("install", "error", "says"),
    [
        (f"{STUBBORN}\necho port 5060 is taken >&2; exit 7", CommandFailed, "ended with 7: port 5060 is taken"),
        (f"{STUBBORN}\necho no answer; sleep {MARK}", NotReady, "not ready after 3.0 s; last seen: no answer"),
        ("kill -9 $$", CommandFailed, "install script of back-end-1 .* was killed by SIGKILL: nothing was written"),
    ],
)  # fmt: skip
def test_a_failing_install_script_is_one_sentence_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, install: str, error: type[CsitError], says: str
) -> None:
    monkeypatch.setattr(instances, "INSTALLED_WITHIN_S", 3.0 if error is NotReady else 60.0)
    monkeypatch.setattr(instances, "_GRACE_S", 0.2)
    with pytest.raises(error, match=says), running(specifications(tmp_path, install=install)):
        pytest.fail("it is not up")


@pytest.mark.parametrize(
    ("generator", "error", "says"),
    [
        (f"{STUBBORN}\necho no route >&2; exit 1", CommandFailed, "generator script .* ended with 1: no route"),
        (f"{STUBBORN}\ntrue", CsitError, "generator.sh reported nothing"),
        ("echo bye", CsitError, "generator.sh reported no indicator: 'bye'"),
        (f"{STUBBORN}\nsleep {MARK}", NotReady, "generator script not ready after 1.2 s"),
    ],
)
def test_a_failing_generator_is_one_sentence_and_the_service_goes_on(
    tmp_path: Path, generator: str, error: type[CsitError], says: str
) -> None:
    specs = specifications(tmp_path, generator=generator)
    if error is NotReady:
        specs = replace(specs, workload=specs.workload.model_copy(update={"within_s": 1.0}))
    with running(specs) as service:
        with pytest.raises(error, match=says):
            service.offer(10)
        assert processes(MARK) == {}, "what the script left running has ended"
        assert service.problems() == ()


def test_remove_scripts_run_in_every_instance_and_a_failing_one_leaves_nothing(tmp_path: Path) -> None:
    specs = specifications(tmp_path, remove=f"touch {tmp_path}/gone-$CSIT_COMPONENT-$CSIT_INSTANCE; exit 3")
    with pytest.raises(CsitError, match=r"(remove script of .* ended with 3.*){3}"), running(specs, size(2, 1)):
        pass
    assert len(list(tmp_path.glob("gone-*"))) == 3


def test_a_size_whose_script_fails_does_not_end_the_search(tmp_path: Path) -> None:
    one, two = (
        {"components": {"back-end": {"flavor": "small"}, "front": {"flavor": "small", "instances": n}}} for n in (1, 2)
    )
    specs = specifications(
        tmp_path, install=f"test $CSIT_INSTANCE = 1 || {{ echo second >&2; exit 9; }}; {IDLE}", sizes=[two, one]
    )  # fmt: skip
    with machine() as lock:
        deployed = LocalOrchestrator(specs, lock, discover(), oversubscribe=True)
        found = run_sizing(specs.deployment, specs.workload, deployed)
    assert "ended with 9: second" in (found.sizes[0].failed or "")
    assert (found.best, found.sizes[1].capacity) == ("be1s-fr1s", 30.0)


HOLDER = """
import sys, time
from pathlib import Path
from tests.integration.services import service_of
from tests.integration.traffic import machine
from resources.libraries.python.model.service.load import load_specifications
folder = Path(sys.argv[1])
with machine() as lock:
    service_of(lock, load_specifications(folder / "deployment.json", folder / "workload.json")).start()
    print("deployed", flush=True)
    time.sleep(60)
"""


def test_the_next_run_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    specifications(tmp_path, install=STUBBORN)
    with victim(HOLDER, str(tmp_path)) as run:
        # Their scripts have ended when it is up; the shells in the background may not have come to `sleep`.
        wait_until("two programs", lambda: None if len(processes(MARK)) == 2 else str(processes(MARK)), 60.0)
        run.kill()
    with machine() as lock:
        assert lock.leftovers() == []
        assert processes(MARK) == {}
        assert service_of(lock, specifications(tmp_path)).facts()["pinning"] == "off"


def test_a_foreign_group_is_left_alone(tmp_path: Path) -> None:
    specs = specifications(tmp_path)
    theirs = next(iter(service_of_groups(specs)))
    theirs.mkdir()
    try:
        with pytest.raises(CsitError, match=r"there is a control group .* already, not ours; `rmdir "), running(specs):
            pytest.fail("it is not up")
        assert theirs.is_dir()
    finally:
        theirs.rmdir()


def service_of_groups(specs: Specifications) -> list[Path]:
    """Folders of the groups of a service that is not up."""
    with machine() as lock:
        instances = service_of(lock, specs)._instances
        assert isinstance(instances, Instances)
        return [folder for row in instances.rows.values() for folder in row.group.folders]
