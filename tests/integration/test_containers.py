"""NFs in containers of a real engine: packets, planned CPUs, programs inside, nothing left, also after kill -9."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from resources.libraries.python.drivers.containers.container_cleanup import call
from resources.libraries.python.drivers.containers.engine import Engine, layers_of
from resources.libraries.python.drivers.containers.engine_choice import choose, missing
from resources.libraries.python.drivers.functions.nftables.program import missing as missing_nft
from resources.libraries.python.drivers.functions.testpmd.driver import missing as missing_testpmd
from resources.libraries.python.drivers.host.cgroups.cgroups import discover as controllers
from resources.libraries.python.drivers.host.links.namespaces import inode
from resources.libraries.python.drivers.host.ownership.ownership import DIRECTORY
from resources.libraries.python.drivers.host.ownership.ownership_record import OwnershipRecord
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.model.core_map import ThreadRole
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.request.kinds import Limits, NfKind, UserProgram
from resources.libraries.python.model.testbed.cpu import expand
from resources.libraries.python.model.testbed.nodes import Container
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.testbed.deployment.cell import Deployment
from tests.builders import cell_of
from tests.integration.robot_runs import PROJECT, csit, going_on, held_in_a_trial, results, run_robot, variables
from tests.integration.user_space import cell, deployed, planned, processes, send_and_count

LOCAL_PODMAN = PROJECT / "topologies" / "local-podman.yaml"
PODMAN = Container(engine="podman")
LACKING = "; ".join(map(str, missing(PODMAN)))
NO_DOCKER = "; ".join(map(str, missing(Container(engine="docker"))))
pytestmark = [
    pytest.mark.parallel,
    pytest.mark.usefixtures("awake"),
    pytest.mark.root,
    pytest.mark.skipif(bool(LACKING), reason=LACKING),
]
WITH_NFT = pytest.mark.skipif(bool(list(missing_nft())), reason="; ".join(map(str, missing_nft())))
WITH_TESTPMD = pytest.mark.skipif(bool(list(missing_testpmd())), reason="; ".join(map(str, missing_testpmd())))
ROUTER, FIREWALL, NAT = map(NfKind, ("linux_router", "linux_firewall", "linux_nat"))
TESTPMD, PROCESS = NfKind("testpmd"), NfKind("process")
TESTPMDS = () if list(missing_testpmd()) else (TESTPMD,)
QUICK = variables(f"TOPOLOGY:{LOCAL_PODMAN} NF_SIZES:1c SEARCH:quick,sum=1,time=10")
LONG = (*variables(f"TOPOLOGY:{LOCAL_PODMAN} NF_SIZES:1c SEARCH:quick"), "--suite", "csc-ndrpdr")
COUNTER = """import sys
(row,) = (line.split() for line in open("/proc/net/dev") if line.strip().startswith(sys.argv[1] + ":"))
print("packets", row[2])"""


def engine() -> Engine:
    found = choose(PODMAN).engine
    assert found is not None
    return found


def containers() -> list[str]:
    """Names of all containers in the store of ours."""
    return call(engine(), [*engine().command, "ps", "--all", "--format", "{{.Names}}"]).split()


def groups() -> set[Path]:
    """Control groups of containers, of all controllers."""
    return {*Path("/sys/fs/cgroup").glob("libpod-*"), *Path("/sys/fs/cgroup").glob("*/libpod-*")}


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    yield
    assert containers() == []
    assert groups() == set()
    mounts = Path("/proc/self/mounts").read_text(encoding="utf-8")
    assert str(DIRECTORY) not in mounts
    # Podman's process for a container ends a moment after it.
    wait_until("end of conmon", lambda: "; ".join(row for row in processes("conmon").values() if "csit-nf" in row), 5.0)


def topology(settings: Container = PODMAN) -> Topology:
    read = load_topology(LOCAL_PODMAN)
    dut = read.dut.model_copy(update={"container": settings, "containers": (*read.dut.containers, *TESTPMDS)})
    return read.model_copy(update={"nodes": {**read.nodes, "DUT1": dut}})


def first_processes(deployment: Deployment) -> dict[str, int]:
    """As the engine shows them: the first process of each NF's container, which run."""
    names = [function.name for function in deployment.plan.functions]
    assert sorted(containers()) == sorted(f"csit-{name}" for name in names)
    form = "{{.State.Pid}}"
    rows = call(engine(), [*engine().command, "inspect", "--format", form, *(f"csit-{name}" for name in names)]).split()
    return dict(zip(names, map(int, rows), strict=True))


def allowed(pid: int) -> set[int]:
    """CPUs of a process, as the kernel shows them."""
    rows = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return {*expand(next(row.split()[1] for row in rows if row.startswith("Cpus_allowed_list:")))}


def namespace(pid: int | str, kind: str) -> str:
    return str(Path(f"/proc/{pid}/ns/{kind}").readlink())


def running_in(first: int) -> list[int]:
    """Other processes in the network namespace of a container, wherever else they are."""
    wanted, found = namespace(first, "net"), []
    for pid in (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()):
        with suppress(OSError):
            if pid != first and namespace(pid, "net") == wanted:
                found.append(pid)
    return found


def assert_inside(pid: int, first: int) -> None:
    """A process is in the namespaces and control groups of a container, whose first one is given."""
    for kind in ("mnt", "uts", "net"):
        assert namespace(pid, kind) == namespace(first, kind), kind
    assert namespace(pid, "mnt") != namespace("self", "mnt")
    inside = Path(f"/proc/{pid}/cgroup").read_text(encoding="ascii")
    assert "libpod-" in inside
    assert inside == Path(f"/proc/{first}/cgroup").read_text(encoding="ascii")


@pytest.mark.parametrize(
    ("service_type", "rows", "kinds"),
    [
        ("CSC", 1, (ROUTER,)),
        ("CSC", 2, (ROUTER, ROUTER)),
        pytest.param("CSP", 2, (FIREWALL, NAT), marks=WITH_NFT),
        pytest.param("CSC", 1, (TESTPMD,), marks=WITH_TESTPMD),
        pytest.param("CSP", 1, (ROUTER, TESTPMD), marks=WITH_TESTPMD),
    ],
)
def test_nfs_in_containers_forward_on_their_cpus(service_type: str, rows: int, kinds: tuple[NfKind, ...]) -> None:
    """Every hop sees each frame once; the kernel confirms namespace and CPUs of each container."""
    with deployed(topology(), cell(service_type, rows, len(kinds), kinds)) as deployment:
        send_and_count(deployment)
        assert {row.interface: row.actual_cpus for row in deployment.affinity()} == planned(deployment.plan)
        cores = deployment.plan.cores
        for name, pid in first_processes(deployment).items():
            assert allowed(pid) == {*cores.cpus(name), *cores.cpus(name, ThreadRole.MAIN)}
            assert namespace(pid, "net") == f"net:[{Path(f'/run/netns/csit-{name}').stat().st_ino}]"
        firsts = first_processes(deployment)
        programs = {name: running_in(pid) for name, pid in firsts.items()}
        for name, found in programs.items():
            for pid in found:
                assert_inside(pid, firsts[name])
        # As much as a favoured thread of the vSwitch, and not before that one is favoured.
        files = [group / name for group in groups() for name in ("cpu.shares", "cpu.weight.nice")]
        weights = [file.read_text(encoding="ascii").strip() for file in files if file.exists()]
        assert len(weights) == len(firsts)
        assert set(weights) <= {"88761", "-20"}, "in control groups of version 1 or 2"
        with_program = {nf.name for nf in deployment.plan.functions if nf.kind == TESTPMD}
        assert {name for name, found in programs.items() if found} == with_program
        assert deployment.problems() == ()
        assert deployment.facts()["functions"]["containers"].startswith("podman ")


@pytest.mark.parametrize("parent", layers_of(Path()), ids=["Podman 4", "Podman 5"])
def test_layers_that_a_removal_left_mounted_are_gone_with_the_next_deployment(parent: Path) -> None:
    store = engine().store
    assert store is not None
    left = store / parent / ("0" * 64)
    place = left / "rootfs" / "merge"
    place.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "left", place], check=True)
    (place / "open").touch()
    with (place / "open").open("rb"), deployed(topology(), cell("CSC", 1, 1)):
        assert not left.exists()
        assert len(layers(store)) == 1
    assert layers(store) == []


def layers(store: Path) -> list[Path]:
    return [each for folder in layers_of(store) if folder.is_dir() for each in folder.iterdir()]


def test_a_program_of_the_user_runs_inside_and_within_its_limits() -> None:
    program = UserProgram(
        start=(sys.executable, "-c", "import time\nwhile True: time.sleep(60)  # in a container"),
        stat=(sys.executable, "-c", COUNTER, "{left}"),
    )
    asked = cell_of("CSC", 1, 1, nf_kinds=(PROCESS,), programs=(program,), limits=(Limits(cpu=0.5, memory_mib=256),))
    with deployed(topology(), asked) as deployment:
        send_and_count(deployment)
        (first,) = first_processes(deployment).values()
        (pid,) = running_in(first)
        assert_inside(pid, first)
        assert allowed(pid) == {*deployment.plan.cores.cpus("nf-1-1")}
        quota, memory = (
            ("cpu.max", "memory.max") if controllers().version == 2 else ("cpu.cfs_quota_us", "memory.limit_in_bytes")
        )
        files = [each / name for each in groups() for name in (quota, memory) if (each / name).exists()]
        found = {file.name: file.read_text(encoding="ascii").split()[0] for file in files}
        assert found == {quota: "50000", memory: str(256 << 20)}
        assert deployment.parts.functions.processed()["nf-1-1"].packets >= 20


def test_a_container_removed_from_outside_is_named() -> None:
    with deployed(topology(), cell("CSC", 1, 2)) as deployment:
        os.kill(first_processes(deployment)["nf-1-2"], signal.SIGKILL)
        assert "the container of nf-1-2 has ended" in deployment.problems()


@pytest.mark.skipif(bool(NO_DOCKER), reason=NO_DOCKER)
def test_docker_does_the_same_without_an_image() -> None:
    with deployed(topology(Container(engine="docker")), cell("CSC", 2, 1)) as deployment:
        send_and_count(deployment)
        assert deployment.problems() == ()
        assert deployment.facts()["functions"]["containers"].startswith("docker ")
        shown = subprocess.run(
            ["docker", "ps", "--format", "{{.Names}}"], capture_output=True, text=True, check=True, timeout=60
        )
        assert {"csit-nf-1-1", "csit-nf-2-1"} <= {*shown.stdout.split()}


def test_the_suites_run_and_say_what_nfs_ran_in(tmp_path: Path) -> None:
    done = run_robot(tmp_path, *QUICK, "-v", "CELLS:1x1", "--suite", "csc-mrr", "--suite", "csp-mrr")
    assert len(rows := results(tmp_path)) == 2
    assert all(row.mrr and row.facts["functions"]["containers"].startswith("podman ") for row in rows)
    assert "containers of NFs: podman" in done.stdout + done.stderr


def test_after_kill_9_in_a_trial_cleanup_leaves_nothing(tmp_path: Path) -> None:
    with going_on(tmp_path, *LONG, "-v", "CELLS:2x2") as victim:
        with held_in_a_trial(victim, tmp_path, "CSC 2R2C"):
            assert len(containers()) == 4
            victim.send_signal(signal.SIGKILL)
        victim.communicate()
    assert len(containers()) == 4
    record = OwnershipRecord.model_validate_json((DIRECTORY / "owner.json").read_text(encoding="utf-8"))
    assert len(record.model_extra["containers"]) == 4
    assert record.groups
    listed = csit("cleanup", str(LOCAL_PODMAN))
    assert "podman container csit-nf-2-2" in listed.stdout
    done = csit("cleanup", str(LOCAL_PODMAN), "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "removed podman container csit-nf-2-2" in done.stdout
    assert "clean" in done.stdout
    assert containers() == []
    assert not [folder for folder in record.groups if folder.exists()]
    assert not [each for each in record.workers if each.alive]
    assert not [name for name, made in record.namespaces.items() if made == inode(name)]
