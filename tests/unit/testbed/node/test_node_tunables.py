"""Settings of a node: changed with what was there on record, and put back to the letter; cleanup of machines."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from resources.libraries.python.drivers.generators.trex import HUGE_FILES
from resources.libraries.python.drivers.host.nics.nic_driver import ParentFunction
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.probes.tracer.registration import TRACES
from resources.libraries.python.errors import CsitError, InUse
from resources.libraries.python.testbed.maintenance import cleanup
from resources.libraries.python.testbed.maintenance.cleanup import MachineLeftovers
from resources.libraries.python.testbed.node.facts import Leftovers
from resources.libraries.python.testbed.node.scripts import leftovers, tunables
from tests.unit.testbed.node.machine_trees import tree

GOVERNORS = [f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor" for cpu in (0, 1)]
IRQ_24, IRQ_25 = "/proc/irq/24/smp_affinity_list", "/proc/irq/25/smp_affinity_list"
SWAPPINESS = "/proc/sys/vm/swappiness"
PAGES = "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages"
BEFORE = {GOVERNORS[0]: "schedutil", GOVERNORS[1]: "performance", IRQ_24: "0-15", IRQ_25: "3,5-7"}
BEFORE |= {SWAPPINESS: "60", PAGES: "12"}
WANTED = {**dict.fromkeys(GOVERNORS, "performance"), IRQ_24: "0", SWAPPINESS: "0"}


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
    with MachineLock(tmp_path) as killed:
        killed.claim("functions", ParentFunction(pci_address="0000:3b:00.0"))
        killed.claim(HUGE_FILES, "csit")
        killed.claim(TRACES, "csit-9")
    asked = {"record": str(tmp_path), **dict.fromkeys(("runtimes", "namespaces", "prepared"), str(tmp_path / "none"))}
    found = Leftovers.model_validate(leftovers.answer(asked))
    lines = ("functions: pci_address 0000:3b:00.0", "huge page files of csit", "tracing instance csit-9")
    assert found.lines() == lines
    assert not MachineLeftovers("DUT1", found, ()).clean


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_settings_are_changed_and_put_back_to_what_was_there_at_first(machine: Machine) -> None:
    assert machine.ask("look") == {"files": BEFORE}
    said = machine.apply(WANTED)
    changed = [[GOVERNORS[0], "schedutil", "performance"], [IRQ_24, "0-15", "0"], [SWAPPINESS, "60", "0"]]
    assert said["changed"] == changed
    assert machine.now() == {**BEFORE, **WANTED}
    assert machine.prepared() == {"by": "ann@here", "since": machine.prepared()["since"], "settings": 3}
    assert machine.ask("restore")["restored"] == [[path, now, before] for path, before, now in changed[::-1]]
    assert machine.now() == BEFORE and machine.prepared() is None
    machine.apply({SWAPPINESS: "10", PAGES: "99"})
    said = machine.apply({SWAPPINESS: "0", IRQ_25: "3"}, by="bob@there")
    assert said["changed"] == [[SWAPPINESS, "10", "0"], [IRQ_25, "3,5-7", "3"]]
    assert machine.prepared()["by"] == "ann@here"
    machine.ask("restore")
    assert machine.now() == BEFORE


@pytest.mark.parametrize("written", range(4))
@pytest.mark.parametrize("do", ["apply", "restore"])
def test_what_was_there_is_known_wherever_a_change_or_its_end_was_cut_off(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, written: int, do: str
) -> None:
    if do == "restore":
        machine.apply(dict.fromkeys(BEFORE, "0"))
    done, whole = list[str](), tunables._write

    def write(root: Path, path: str, value: str) -> str:
        if len(done) == written:
            raise SystemExit("killed")
        done.append(path)
        return whole(root, path, value)

    with monkeypatch.context() as context, pytest.raises(SystemExit):
        context.setattr(tunables, "_write", write)
        machine.ask(do, settings=list(dict.fromkeys(BEFORE, "0").items()), by="ann@here")
    changed = sum(BEFORE[path] != text for path, text in machine.now().items())
    assert changed == (written if do == "apply" else len(BEFORE) - written)
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
    assert said["refused"] == [[IRQ_24, "Input/output error"]]
    assert machine.now()[SWAPPINESS] == "0"
    said = machine.ask("restore")
    assert not said["failed_paths"] and machine.now() == BEFORE, "what was not changed need not be put back"


def test_what_cannot_be_put_back_stays_on_record_unless_gone(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.apply(WANTED)
    with monkeypatch.context() as context:
        context.setattr(tunables, "_write", lambda *_: "Device or resource busy")
        assert len(machine.ask("restore")["failed_paths"]) == 3
    assert machine.prepared()["settings"] == 3
    machine.ask("restore")
    assert machine.now() == BEFORE and machine.prepared() is None
    machine.apply(WANTED)
    (machine.root / IRQ_24[1:]).unlink()
    said = machine.ask("restore")
    assert not said["failed_paths"] and machine.prepared() is None


def test_a_file_that_is_no_record_is_not_overwritten(machine: Machine) -> None:
    machine.directory.mkdir()
    (machine.directory / "prepared.json").write_text("[]", encoding="utf-8")
    assert "is no record of this program" in machine.apply(WANTED)["failed"]
    assert machine.now() == BEFORE


def left(machine: str, *, in_use: bool = False) -> Any:
    runtime = SimpleNamespace(name="a" * 64)
    found = SimpleNamespace(lines=lambda: ["a namespace"], prepared=True, in_use=in_use, who="of an unknown owner")
    return SimpleNamespace(machine=machine, left=found, stale=(runtime,))


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Steps, of which those on DUT1 fail."""
    found: list[str] = []

    def step(what: str, place: Any) -> list[str]:
        found.append(f"{what} {place.name}")
        if place.name == "DUT1":
            raise CsitError(f"{place.name}: {what} failed")
        return [what]

    monkeypatch.setattr(cleanup, "join", lambda _: False)
    monkeypatch.setattr(cleanup, "_find", lambda place, **_: left(place.name, in_use=place.name == "busy"))
    monkeypatch.setattr(cleanup, "_tidy", lambda place, _: step("objects", place))
    monkeypatch.setattr(cleanup, "ask", lambda place, *_, **__: step("runtimes", place))
    monkeypatch.setattr(cleanup, "restore", lambda place: step("settings", place))
    return found


def machines(*names: str) -> Any:
    places = {name: SimpleNamespace(name=name, python="python3", reservable=None) for name in names}
    for place in places.values():
        place.connection = place
    return SimpleNamespace(places=places)


def test_all_machines_are_cleaned_and_all_failures_told(taken: list[str]) -> None:
    with pytest.raises(CsitError) as told:
        cleanup.remove(machines("DUT1", "TG"), [left("DUT1"), left("TG")], 0.0)
    steps = ("objects", "runtimes", "settings")
    assert str(told.value) == "; ".join(f"DUT1: {step} failed" for step in steps)
    assert sorted(taken) == sorted(f"{step} {name}" for step in steps for name in ("DUT1", "TG"))


def test_nothing_is_touched_where_a_run_is_alive(taken: list[str]) -> None:
    with pytest.raises(InUse, match="busy: a run is alive there"):
        cleanup.remove(machines("TG", "busy"), [left("TG"), left("busy", in_use=True)], 0.0)
    assert taken == []
