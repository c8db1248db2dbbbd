"""CPUs of made-up machines, their idle states, and SMT."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from resources.libraries.python.drivers.host.cpu import smt
from resources.libraries.python.drivers.host.cpu.cpu import discover, kept_awake, smt_control
from resources.libraries.python.drivers.host.cpu.smt import SmtOff
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.testbed.cpu import CpuLayout

Row = tuple[int, str, int, int | None]
"""CPU, its siblings as the kernel writes them, package, NUMA node or none."""


def machine(root: Path, online: str, rows: Iterable[Row]) -> Path:
    """A tree like /sys/devices/system."""
    (root / "cpu").mkdir()
    (root / "cpu" / "online").write_text(f"{online}\n")
    for cpu, siblings, package, node in rows:
        topology = root / "cpu" / f"cpu{cpu}" / "topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(f"{siblings}\n")
        (topology / "physical_package_id").write_text(f"{package}\n")
        (topology / "core_id").write_text("0\n")  # as useless as in real life
        if node is not None:
            (root / "cpu" / f"cpu{cpu}" / f"node{node}").mkdir()
    return root


def test_siblings_numbered_in_a_row(tmp_path: Path) -> None:
    rows = [(cpu, f"{cpu // 2 * 2}-{cpu // 2 * 2 + 1}", 0, 0) for cpu in range(4)]
    found = discover(machine(tmp_path, "0-3", rows), allowed=range(4))
    assert found.smt
    assert found.cores(0) == ((0, 1), (2, 3))


def test_siblings_numbered_in_halves(tmp_path: Path) -> None:
    rows = [(cpu, f"{cpu % 2},{cpu % 2 + 2}", 0, 0) for cpu in range(4)]
    assert discover(machine(tmp_path, "0-3", rows), allowed=range(4)).cores(0) == ((0, 2), (1, 3))


def test_smt_off(tmp_path: Path) -> None:
    found = discover(machine(tmp_path, "0,2", [(0, "0", 0, 0), (2, "2", 0, 0)]), allowed=range(8))
    assert not found.smt
    assert found.cores(0) == ((0,), (2,))


def test_two_numa_nodes_and_sockets(tmp_path: Path) -> None:
    rows = [(cpu, str(cpu), cpu // 2, cpu // 2) for cpu in range(4)]
    found = discover(machine(tmp_path, "0-3", rows), allowed=range(4))
    assert found.numa_nodes == (0, 1)
    assert (found.cores(0), found.cores(1)) == (((0,), (1,)), ((2,), (3,)))
    assert [row.socket for row in found.cpus] == [0, 0, 1, 1]


def test_a_cpuset_hides_cpus(tmp_path: Path) -> None:
    rows = [(cpu, f"{cpu // 2 * 2}-{cpu // 2 * 2 + 1}", 0, 0) for cpu in range(4)]
    assert discover(machine(tmp_path, "0-3", rows), allowed={1, 2, 3}).cores(0) == ((1,), (2, 3))


def test_no_numa_and_no_package(tmp_path: Path) -> None:
    found = discover(machine(tmp_path, "0", [(0, "0", -1, None)]), allowed={0})
    assert (found.cpus[0].socket, found.cpus[0].node) == (0, 0)


def test_nothing_usable(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match=r"none of the CPUs \[7\]"):
        discover(machine(tmp_path, "0", [(0, "0", 0, 0)]), allowed={7})


def test_no_description(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="online is missing"):
        discover(tmp_path, allowed={0})


def test_zero_microseconds_are_asked_for(tmp_path: Path) -> None:
    requests = tmp_path / "cpu_dma_latency"
    requests.touch()
    with kept_awake(requests):
        assert requests.read_bytes() == bytes(4)


def test_a_kernel_that_takes_no_requests_is_left_alone(tmp_path: Path) -> None:
    went_on = False
    with kept_awake(tmp_path / "none"):
        went_on = True
    assert went_on
    assert not (tmp_path / "none").exists()


CPUS = range(8)


class SmtKernel:
    """A tree like /sys/devices/system of 4 cores, CPU 4 to 7 being the second threads, and what the kernel does."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.second = {4, 5, 6, 7}
        """Threads that go offline."""
        (root / "cpu/smt").mkdir(parents=True)
        for cpu in CPUS:
            (root / "cpu" / f"cpu{cpu}").mkdir()
            (root / "cpu" / f"cpu{cpu}" / "online").write_text("1\n")
        self.write(root, "on")

    def write(self, _: Path, state: str) -> None:
        online = [cpu for cpu in CPUS if state == "on" or cpu not in self.second]
        (self.root / "cpu/smt/control").write_text(f"{state}\n")
        (self.root / "cpu/online").write_text(",".join(map(str, online)) + "\n")
        for cpu in CPUS:
            topology = self.root / "cpu" / f"cpu{cpu}" / "topology"
            topology.mkdir(parents=True, exist_ok=True)
            siblings = f"{cpu % 4},{cpu % 4 + 4}" if state == "on" else str(cpu % 4)
            (topology / "thread_siblings_list").write_text(f"{siblings}\n")
            (topology / "physical_package_id").write_text("0\n")


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmtKernel:
    made = SmtKernel(tmp_path / "system")
    monkeypatch.setattr(smt, "_write", made.write)
    return made


def lock(tmp_path: Path) -> MachineLock:
    return MachineLock(tmp_path / "run", tmp_path / "settings")


def found(kernel: SmtKernel, tmp_path: Path, allowed: range | set[int] = CPUS) -> CpuLayout:
    return discover(kernel.root, allowed=allowed, record=tmp_path / "run/owner.json")


def test_it_is_off_for_a_cell_and_on_record_meanwhile(kernel: SmtKernel, tmp_path: Path) -> None:
    with lock(tmp_path) as held:
        part = SmtOff(found(kernel, tmp_path), held, kernel.root)
        assert smt_control(kernel.root) == "on"
        part.start()
        assert smt_control(kernel.root) == "off"
        assert held.leftovers() == ["SMT switched off; it was on"]
        part.stop()
        part.stop()  # safe to repeat
        assert smt_control(kernel.root) == "on"
        assert held.leftovers() == []


def test_cpus_that_a_user_had_offline_are_offline_again(kernel: SmtKernel, tmp_path: Path) -> None:
    """Also where a cleanup was killed when SMT was on again; the kernel takes all threads online."""
    (kernel.root / "cpu/online").write_text("0-4,6-7\n")
    with lock(tmp_path) as held:
        part = SmtOff(found(kernel, tmp_path), held, kernel.root)
        part.start()
        part.stop()
        offline = {cpu: (kernel.root / "cpu" / f"cpu{cpu}" / "online").read_text().strip() for cpu in CPUS}
        assert offline == dict.fromkeys(CPUS, "1") | {5: "0"}
        (kernel.root / "cpu/online").write_text("0-4,6-7\n")
        part.start()
        (kernel.root / "cpu/cpu5/online").write_text("1\n")
        kernel.write(kernel.root, "on")  # and then the end of that process
    with lock(tmp_path) as following:
        assert following.remove_leftovers() == []
    assert (kernel.root / "cpu/cpu5/online").read_text() == "0"


def test_the_next_run_after_a_kill_plans_with_all_threads_and_switches_it_on(kernel: SmtKernel, tmp_path: Path) -> None:
    before = found(kernel, tmp_path)
    with lock(tmp_path) as held:  # whose holder does not come to stopping the part
        SmtOff(before, held, kernel.root).start()
    assert found(kernel, tmp_path) == before, "as it will be when that run has the lock"
    assert found(kernel, tmp_path, {1, 2}).cores(0) == ((1, 5), (2, 6)), "an offline thread may go where its core may"
    with lock(tmp_path) as following:
        (said,) = following.remove_leftovers()
        assert said.startswith("switched SMT on again of pid ")
        assert smt_control(kernel.root) == "on"
        assert following.leftovers() == []


def test_smt_that_a_user_switched_off_stays_off(kernel: SmtKernel, tmp_path: Path) -> None:
    kernel.write(kernel.root, "off")
    layout = found(kernel, tmp_path)
    assert not layout.smt
    with lock(tmp_path) as held:
        part = SmtOff(layout, held, kernel.root)
        with pytest.raises(Unsupported) as refused:
            part.start()
        assert str(refused.value) == (
            f"SMT cannot be switched off on this machine: {kernel.root}/cpu/smt/control says off"
        )
        part.stop()
    assert smt_control(kernel.root) == "off"


@pytest.mark.parametrize("content", ["", "[]", '{"smt": []}', '{"smt": [{"layout": 7}]}'])
def test_a_record_that_is_damaged_or_of_something_else_changes_no_layout(
    kernel: SmtKernel, tmp_path: Path, content: str
) -> None:
    kernel.write(kernel.root, "off")
    (tmp_path / "run").mkdir()
    (tmp_path / "run/owner.json").write_text(content)
    assert [row.cpu for row in found(kernel, tmp_path).cpus] == [0, 1, 2, 3]


def test_a_kernel_that_keeps_other_threads_is_named_and_given_back(kernel: SmtKernel, tmp_path: Path) -> None:
    kernel.second = {0, 1, 2, 3}
    with lock(tmp_path) as held:
        part = SmtOff(found(kernel, tmp_path), held, kernel.root)
        with pytest.raises(CsitError, match="CPU 0 went offline with SMT, although it is the first thread of its core"):
            part.start()
        part.stop()
        assert smt_control(kernel.root) == "on"


def test_a_kernel_that_refuses_is_named_with_the_file(tmp_path: Path) -> None:
    (tmp_path / "cpu/smt/control").mkdir(parents=True)
    with pytest.raises(CsitError) as refused:
        smt._write(tmp_path, "off")
    assert str(refused.value) == f"SMT cannot be switched off: {tmp_path}/cpu/smt/control: Is a directory"
