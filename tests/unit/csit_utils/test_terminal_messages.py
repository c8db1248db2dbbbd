"""Sentences of commands on testbeds, errors and Robot's console: wrapped at words on a terminal, whole in a pipe."""

import io
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from csit_utils import cli
from csit_utils.commands.testbeds import cleanup
from csit_utils.commands.testbeds.doctor import print_findings
from resources.libraries.python.emulation.testbed import EmulatedTestbed, State
from resources.libraries.python.errors import ConfigError, HostRefused
from resources.libraries.python.model.findings.check_finding import ok, problem, warning
from resources.libraries.python.paths import LOCAL_TOPOLOGY, PROJECT
from resources.libraries.python.testbed.maintenance import preparation
from resources.libraries.python.testbed.maintenance.cleanup import MachineLeftovers
from resources.libraries.python.testbed.maintenance.preparation import PreparationResult, Proposal
from resources.libraries.python.testbed.node.facts import Leftovers, LeftProcess, Owner, PreparedSettings, StoredRuntime
from resources.libraries.python.testbed.node.preparation import Preparation, SettingChange

_WIDTH = 80
_GROUP = "/sys/fs/cgroup/csit-density/" + "container-of-an-instance/" * 4
_BOOT = "isolcpus=managed_irq,domain,2-63 nohz_full=2-63 rcu_nocbs=2-63 " * 2
_WHY = "of data threads, which must not be interrupted, and whose memory is on their own NUMA node"

Shown = Callable[..., tuple[list[str], list[str]]]


class Console(io.StringIO):
    """A stream, or a terminal."""

    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Shown:
    """Lines of a command in a pipe, and on a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", str(_WIDTH))
    monkeypatch.setenv("NO_COLOR", "1")

    def lines(*arguments: str) -> tuple[list[str], list[str]]:
        texts = []
        for terminal in (False, True):
            console = Console(terminal=terminal)
            for name in ("stdout", "stderr", "__stdout__", "__stderr__"):
                monkeypatch.setattr(sys, name, console)
            monkeypatch.setattr(sys, "argv", ["csit", *arguments])
            with suppress(SystemExit):
                cli.main()
            texts.append(console.getvalue().splitlines())
        return texts[0], texts[1]

    return lines


def fits(piped: list[str], terminal: list[str], *whole: str) -> None:
    """Check that a terminal shows the words of a pipe, each line within its width, and some texts on one line."""
    assert " ".join(terminal).split() == " ".join(piped).split()
    assert any(len(line) > _WIDTH for line in piped), "nothing had to be wrapped"
    kept = [line for line in terminal if any(text in line for text in whole)]
    assert len(kept) >= len(whole)
    assert [line for line in terminal if len(line) > _WIDTH and line not in kept and " " in line.strip()] == []


def test_cleanup(monkeypatch: pytest.MonkeyPatch, shown: Shown) -> None:
    left = Leftovers(
        in_use=True, problem=None,
        owner=Owner(pid=7, start_ticks=1, command="robot " * 20, alive=True, user="root", since="now"),
        namespaces=("csit-nf-1-1",), processes=(LeftProcess(pid=9, command="qemu-system-x86_64 " + "-device x " * 12),),
        groups=(_GROUP,), settings={}, ports=(), bindings=(), unclaimed=("csit-of-an-other-clone-" + "x" * 40,),
        runtimes=(), prepared=PreparedSettings(by="an engineer of the team for nights", since="now", settings=9),
    )  # fmt: skip
    found = MachineLeftovers("DUT1", left, (StoredRuntime(name="runtime-" + "0" * 12, mb=90, unused_days=44),))
    monkeypatch.setattr(cleanup, "find", lambda *_, **__: [found])
    piped, terminal = shown("cleanup", str(LOCAL_TOPOLOGY))
    fits(piped, terminal, _GROUP, f"ip netns del {left.unclaimed[0]}")


def test_prepare(monkeypatch: pytest.MonkeyPatch, shown: Shown) -> None:
    wanted = Preparation((), stop_irqbalance=True, unavailable=(f"governor: none {_WHY}",), boot=_BOOT.strip())
    change = SettingChange("CPUs of interrupts", tuple(range(24, 90, 2)), "0-63", "0-1", _WHY)
    proposal = Proposal("DUT1", wanted, (change,), "a run is alive there, pid 13085 of root", prepared=False)
    monkeypatch.setattr(preparation, "propose", lambda *_: [proposal])
    fits(*shown("prepare", str(LOCAL_TOPOLOGY), "--dry-run"), wanted.boot)
    done = PreparationResult(proposal, (f"CPUs 24-90: 0-63 -> 0-1 ({_WHY})",), ("huge pages: 100 of 4096",))
    monkeypatch.setattr(preparation, "apply", lambda *_, **__: ("token", [done]))
    piped, terminal = shown("prepare", str(LOCAL_TOPOLOGY))
    fits(piped, terminal, wanted.boot)
    assert piped[-1] == terminal[-1] == "CSIT_RESERVATION=token"


def test_emulate(monkeypatch: pytest.MonkeyPatch, shown: Shown) -> None:
    states = [State(name=name, port=2022, pid=77, memory_mb=900, answers=True) for name in ("TG", "DUT1")]
    monkeypatch.setattr(EmulatedTestbed, "states", lambda _: states)
    piped, terminal = shown("emulate", "status")
    login = [line.partition(" MB: ")[2] for line in piped[:2]]
    assert all(text.startswith("ssh -p 2022 -i ") for text in login)
    fits(piped, terminal, *login)


@pytest.mark.parametrize(
    "error",
    [
        ConfigError(f"{_GROUP}lab.yaml: nodes.DUT1.interfaces.port1.pci_address: no PCI address, such as 0000:3b:00.0"),
        HostRefused("DUT1 shows another host key than line 3 of known_hosts has: ", f"ssh-keygen -R dut1 -f {_GROUP}"),
    ],
)
def test_errors(monkeypatch: pytest.MonkeyPatch, shown: Shown, error: ConfigError) -> None:
    def fail(_: object) -> object:
        raise error

    monkeypatch.setattr(cli, "make_app", fail)
    piped, terminal = shown("show")
    assert piped == [str(error)]
    fits(piped, terminal, *filter(None, [error.command]))
    assert _GROUP not in str(error) or any(_GROUP in line for line in terminal)


def test_a_failure_that_robot_shows_ends_with_a_command_that_can_be_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shown: Shown
) -> None:
    monkeypatch.chdir(tmp_path)
    command = f"ssh-keygen -R dut1 -f {_GROUP}known_hosts && ssh-keyscan -t ed25519 dut1 >>{_GROUP}known_hosts"
    said = f"DUT1 shows another host key than before; if the host was reinstalled: {command}"
    (tmp_path / "one.robot").write_text(f"*** Test Cases ***\nOne\n    Fail    {said}\n", encoding="utf-8")
    piped, terminal = shown("robot", "--output", "NONE", "--log", "NONE", "--report", "NONE", "one.robot")
    lines = [re.sub(r"\x1b\[\d+m", "", line) for line in terminal]
    assert said in piped and said in lines


def test_data_are_not_wrapped(shown: Shown) -> None:
    piped, terminal = shown("schema", "outage")
    assert piped == terminal
    piped, terminal = shown("plan", str(PROJECT / "topologies" / "sim.yaml"), "--cells", "1x1", "--format", "json")
    assert max(map(len, terminal)) > _WIDTH and len(piped) == len(terminal)


def test_in_a_pipe_a_finding_is_a_line_and_those_of_a_node_are_together(capsys: pytest.CaptureFixture[str]) -> None:
    found = [warning("nodes.TG.port1", "link", "is down", "ip link set eth1 up"), ok("nodes.TG", "system", "Debian")]
    print_findings([found[1], problem("nodes.DUT1.access", "reach", "no port 22", "start it"), found[0]])
    assert capsys.readouterr().out.splitlines() == [
        "ok      nodes.TG: system: Debian",
        "warning nodes.TG.port1: link: is down; ip link set eth1 up",
        "problem nodes.DUT1.access: reach: no port 22; start it",
    ]
