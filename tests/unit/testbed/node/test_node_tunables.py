"""Settings of a node: changed with what was there on record, and put back to the letter, on trees of files."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from resources.libraries.python.drivers.generators.trex.registration import HUGE_FILES
from resources.libraries.python.drivers.host.nics.nic_driver import ParentFunction
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.probes.tracer.registration import TRACES
from resources.libraries.python.testbed.maintenance.cleanup import MachineLeftovers
from resources.libraries.python.testbed.node.facts import Leftovers
from resources.libraries.python.testbed.node.scripts import leftovers, tunables
from tests.unit.testbed.node.machine_trees import tree

GOVERNOR = "/sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor"
IRQ = "/proc/irq/{}/smp_affinity_list"
SWAPPINESS = "/proc/sys/vm/swappiness"
PAGES = "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages"
BEFORE = {
    GOVERNOR.format(0): "schedutil",
    GOVERNOR.format(1): "performance",
    IRQ.format(24): "0-15",
    IRQ.format(25): "3,5-7",
    SWAPPINESS: "60",
    PAGES: "12",
}
WANTED = {GOVERNOR.format(0): "performance", GOVERNOR.format(1): "performance", IRQ.format(24): "0", SWAPPINESS: "0"}


class Machine:
    """A machine as a tree of files."""

    def __init__(self, folder: Path) -> None:
        self.root, self.directory = folder / "root", folder / "var"
        self.boot("first")
        tree(self.root, {path[1:]: text for path, text in BEFORE.items()})

    def boot(self, boot_id: str) -> None:
        tree(self.root, {"proc/sys/kernel/random/boot_id": boot_id})

    def ask(self, do: str, **asked: Any) -> dict[str, Any]:
        return tunables.answer({"do": do, "root": str(self.root), "directory": str(self.directory), **asked})

    def apply(self, wanted: dict[str, str], by: str = "ann@here") -> dict[str, Any]:
        return self.ask("apply", settings=list(wanted.items()), by=by)

    def now(self) -> dict[str, str]:
        return {path: (self.root / path[1:]).read_text(encoding="utf-8").strip() for path in BEFORE}

    def prepared(self) -> Any:
        places = dict.fromkeys(("record", "runtimes", "namespaces"), str(self.root / "none"))
        return leftovers.answer({**places, "prepared": str(self.directory / "prepared.json")})["prepared"]


def test_all_that_is_on_the_record_of_a_killed_run_is_a_leftover(tmp_path: Path) -> None:
    """Else a cleanup says that there is nothing, and leaves it there."""
    killed = MachineLock(tmp_path)
    killed.__enter__()
    killed.claim("functions", ParentFunction(pci_address="0000:3b:00.0"))
    killed.claim(HUGE_FILES, "csit")
    killed.claim(TRACES, "csit-9")
    killed.__exit__(None, None, None)
    asked = {"record": str(tmp_path), **dict.fromkeys(("runtimes", "namespaces", "prepared"), str(tmp_path / "none"))}
    found = Leftovers.model_validate(leftovers.answer(asked))
    lines = ("functions: pci_address 0000:3b:00.0", "huge page files of csit", "tracing instance csit-9")
    assert found.lines() == lines
    assert not MachineLeftovers("DUT1", found, ()).clean


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    yield Machine(tmp_path)


def test_all_settings_are_looked_at(machine: Machine) -> None:
    assert machine.ask("look") == {"files": BEFORE}


def test_settings_are_changed_and_put_back_to_the_letter(machine: Machine) -> None:
    said = machine.apply(WANTED)
    assert said["changed"] == [
        [GOVERNOR.format(0), "schedutil", "performance"], [IRQ.format(24), "0-15", "0"], [SWAPPINESS, "60", "0"],
    ]  # fmt: skip
    assert machine.now() == {**BEFORE, **WANTED}
    assert machine.prepared() == {"by": "ann@here", "since": machine.prepared()["since"], "settings": 3}
    assert machine.ask("restore")["restored"] == [
        [SWAPPINESS, "0", "60"], [IRQ.format(24), "0", "0-15"], [GOVERNOR.format(0), "performance", "schedutil"],
    ]  # fmt: skip
    assert machine.now() == BEFORE
    assert machine.prepared() is None


def test_a_second_change_keeps_what_was_there_at_first(machine: Machine) -> None:
    machine.apply({SWAPPINESS: "10", PAGES: "99"})
    said = machine.apply({SWAPPINESS: "0", IRQ.format(25): "3"}, by="bob@there")
    assert said["changed"] == [[SWAPPINESS, "10", "0"], [IRQ.format(25), "3,5-7", "3"]]
    assert machine.prepared()["by"] == "ann@here"
    machine.ask("restore")
    assert machine.now() == BEFORE


@pytest.mark.parametrize("written", range(4))
def test_what_was_there_is_known_wherever_the_change_was_cut_off(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, written: int
) -> None:
    done: list[str] = []

    def write(root: Path, path: str, value: str) -> str:
        if len(done) == written:
            raise SystemExit("killed")
        done.append(path)
        (root / path[1:]).write_text(value, encoding="ascii")
        return ""

    with monkeypatch.context() as context, pytest.raises(SystemExit):
        context.setattr(tunables, "_write", write)
        machine.apply(dict.fromkeys(BEFORE, "0"))
    assert sum(BEFORE[path] != text for path, text in machine.now().items()) == written
    machine.ask("restore")
    assert machine.now() == BEFORE


@pytest.mark.parametrize("written", range(4))
def test_what_was_put_back_by_half_is_put_back_by_the_next_start(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, written: int
) -> None:
    machine.apply(dict.fromkeys(BEFORE, "0"))
    done: list[str] = []
    whole = tunables._write

    def write(root: Path, path: str, value: str) -> str:
        if len(done) == written:
            raise SystemExit("killed")
        done.append(path)
        return whole(root, path, value)

    with monkeypatch.context() as context, pytest.raises(SystemExit):
        context.setattr(tunables, "_write", write)
        machine.ask("restore")
    machine.ask("restore")
    assert machine.now() == BEFORE and machine.prepared() is None


def test_after_a_restart_nothing_is_put_back(machine: Machine) -> None:
    machine.apply(WANTED)
    machine.boot("second")
    rebooted = machine.now()
    assert machine.ask("restore")["restarted"] is True
    assert machine.now() == rebooted and machine.prepared() is None
    machine.boot("first")
    tree(machine.root, {path[1:]: text for path, text in BEFORE.items()})
    machine.apply({SWAPPINESS: "1"})
    machine.boot("second")
    tree(machine.root, {SWAPPINESS[1:]: "40"})
    machine.apply({SWAPPINESS: "0"})
    machine.ask("restore")
    assert machine.now()[SWAPPINESS] == "40", "what was there before the restart is no longer of interest"


def test_what_the_kernel_refuses_is_reported_and_the_rest_is_done(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = tunables._write
    refuse = lambda root, path, value: "Input/output error" if "/irq/" in path else write(root, path, value)  # noqa: E731
    monkeypatch.setattr(tunables, "_write", refuse)
    said = machine.apply(WANTED)
    assert said["refused"] == [[IRQ.format(24), "Input/output error"]]
    assert machine.now()[SWAPPINESS] == "0"
    said = machine.ask("restore")
    assert not said["failed_paths"] and machine.now() == BEFORE, "what was not changed need not be put back"


def test_what_cannot_be_put_back_stays_on_record(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.apply(WANTED)
    with monkeypatch.context() as context:
        context.setattr(tunables, "_write", lambda *_: "Device or resource busy")
        assert len(machine.ask("restore")["failed_paths"]) == 3
    assert machine.prepared()["settings"] == 3
    machine.ask("restore")
    assert machine.now() == BEFORE and machine.prepared() is None


def test_an_interrupt_that_is_gone_needs_nothing(machine: Machine) -> None:
    machine.apply(WANTED)
    (machine.root / IRQ.format(24)[1:]).unlink()
    said = machine.ask("restore")
    assert not said["failed_paths"] and machine.prepared() is None


def test_a_file_that_is_no_record_is_not_overwritten(machine: Machine) -> None:
    machine.directory.mkdir()
    (machine.directory / "prepared.json").write_text("[]", encoding="utf-8")
    assert "is no record of this program" in machine.apply(WANTED)["failed"]
    assert machine.now() == BEFORE
