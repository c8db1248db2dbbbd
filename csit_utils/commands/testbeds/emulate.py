"""`emulate`: a testbed of QEMU machines with PCI NICs on this computer."""

import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import typer

from csit_utils.commands.tables import print_sentence
from resources.libraries.python.emulation.image import MIRROR, cached, image
from resources.libraries.python.emulation.layout import MAX_QUEUES, EmulatedLayout
from resources.libraries.python.emulation.machine import EmulatedNicModel
from resources.libraries.python.emulation.testbed import EmulatedTestbed, State, check, end_unfinished, state_folder
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.redaction import command_text
from resources.libraries.python.terminal import shortened, terminal_width
from resources.libraries.python.whole_files import write_whole

_WITHIN_S = 600.0
_USUAL_S = 30.0
"""Time from start to SSH on two idle cores."""


class Action(StrEnum):
    """Actions of the command."""

    UP = "up"
    STATUS = "status"
    DOWN = "down"
    BUILD = "build"


def emulate(
    action: Annotated[Action, typer.Argument(help="Start, show or stop the testbed, or only build the disk image.")],
    nodes: Annotated[int, typer.Option(min=2, max=3, help="Number of machines: TG, DUT1 and with 3 DUT2.")] = 2,
    nic: Annotated[EmulatedNicModel, typer.Option(help="NIC model of the measured ports.")] = EmulatedNicModel.VIRTIO,
    queues: Annotated[
        int, typer.Option(min=1, max=MAX_QUEUES, help="Receive queues per virtio port; more than 1 need root.")
    ] = 1,
    loop: Annotated[
        bool, typer.Option("--loop", help="Cable two more ports of the TG to each other, to qualify the generator.")
    ] = False,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Also write the topology file there.")] = None,
    name: Annotated[str, typer.Option(help="Name of the testbed, to run several.")] = "testbed",
    kvm: Annotated[bool, typer.Option("--kvm", help="Use KVM instead of software emulation.")] = False,
    mirror: Annotated[str, typer.Option(metavar="URL", help="Debian mirror for the packages of the image.")] = MIRROR,
) -> None:
    """Start a testbed of emulated machines with PCI NICs.

    Try lab runs on it without a lab. The QEMU machines have two NUMA nodes, SMT, an IOMMU, huge pages and
    isolated CPUs. They are joined by virtual cables, reached over SSH, and run in the background until they are
    stopped. The first start builds their disk image from Debian packages: it needs root, takes minutes and 0.6 GB in
    the cache. Later starts take half a minute. Rates are those of software emulation, not density figures.

    \b
    Examples:
    ./csit emulate up                          # prints the topology's path
    ./csit doctor "$(./csit emulate status)"   # status prints it too
    ./csit emulate down
    """  # noqa: D301 - \b keeps the lines of the examples apart
    testbed = EmulatedTestbed(state_folder() / _checked(name))
    for sentence in end_unfinished(state_folder()):
        typer.echo(sentence, err=True)
    match action:
        case Action.UP:
            if queues > 1 and nic is not EmulatedNicModel.VIRTIO:
                raise ConfigError(f"--queues {queues}: only virtio ports support several queues, not {nic}")
            accelerator: Literal["tcg", "kvm"] = "kvm" if kvm else "tcg"
            layout = EmulatedLayout(
                nodes=3 if nodes == 3 else 2, nic=nic, accelerator=accelerator, queues=queues, loop=loop
            )
            _up(testbed, layout, mirror)
            _show(testbed)
            if output is not None:
                write_whole(output, testbed.topology.read_bytes())
        case Action.STATUS:
            if not _show(testbed):
                raise typer.Exit(1)
        case Action.DOWN:
            typer.echo("stopped" if testbed.down() else "not running", err=True)
        case Action.BUILD:
            with _Line() as line:
                made = image(mirror, line.step)
            typer.echo(made.disk.parent)


def _checked(name: str) -> str:
    if not name.replace("-", "").isalnum() or len(name) > 32:
        raise ConfigError(f"--name {name}: use letters, digits and '-', at most 32 characters")
    return name


def _up(testbed: EmulatedTestbed, layout: EmulatedLayout, mirror: str) -> None:
    record, states = testbed.record, testbed.states()
    if record is not None and record.layout == layout and all(state.answers for state in states):
        typer.echo("already running", err=True)
        return
    check(layout)
    if cached() is None:
        typer.echo("building the disk image from Debian packages; once, takes some minutes", err=True)
    with _Line() as line:
        testbed.up(layout, image(mirror, line.step), _WITHIN_S, line.wait)


def _show(testbed: EmulatedTestbed) -> bool:
    """Print machines on stderr and the topology path on stdout; return whether all machines are up."""
    states = testbed.states()
    if not states:
        others = ", ".join(f"--name {name}" for name in _others(testbed))
        hint = f", but there is {others}" if others else "; start one with ./csit emulate up"
        typer.echo(f"no testbed named '{testbed.folder.name}' is running{hint}", err=True)
        return False
    for state in states:
        words, login = _words(testbed, state)
        print_sentence(f"{state.name:5} {words}", login, err=True)
    typer.echo(testbed.topology)
    return all(state.answers for state in states)


def _others(testbed: EmulatedTestbed) -> list[str]:
    if not testbed.folder.parent.is_dir():
        return []
    folders = sorted(folder for folder in testbed.folder.parent.iterdir() if folder.is_dir())
    return [folder.name for folder in folders if folder != testbed.folder and EmulatedTestbed(folder).states()]


def _words(testbed: EmulatedTestbed, state: State) -> tuple[str, str]:
    """State of a machine, and the command that logs in."""
    if state.pid is None:
        return f"exited; log: {testbed.folder / state.name}.log", ""
    key, hosts = testbed.folder / "key", testbed.folder / "known_hosts"
    login = command_text("ssh", "-p", state.port, "-i", key, "-o", f"UserKnownHostsFile={hosts}", "root@127.0.0.1")
    answers = "up" if state.answers else "running, SSH does not answer"
    return f"{answers}, pid {state.pid}, {state.memory_mb} MB:", login


class _Line:
    """Progress on stderr: one line that is overwritten on a terminal, otherwise a line per step."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._said = ""

    def __enter__(self) -> "_Line":
        return self

    def __exit__(self, *_: object) -> None:
        if sys.stderr.isatty() and self._said:
            sys.stderr.write("\r\x1b[K")

    def step(self, done: int, total: int, what: str) -> None:
        """Show a step of building the image."""
        spent = time.monotonic() - self._begun
        left = f", about {spent / done * (total - done):.0f} s left" if done and spent > 1 else ""
        self._say(f"step {done + 1} of {total}: {what.rstrip('.')}{left}")

    def wait(self, what: str, since_s: float, within_s: float) -> None:
        """Show that machines are starting."""
        if not what:
            return
        if not sys.stderr.isatty():
            self._say(f"waiting for {what}, usually {_USUAL_S:.0f} s, {within_s:.0f} s at most")
        else:
            left_s = max(_USUAL_S - since_s, 1)
            self._say(f"waiting for {what}: {since_s:.0f} s, about {left_s:.0f} s left")

    def _say(self, text: str) -> None:
        if text == self._said:
            return
        self._said = text
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\x1b[K{shortened(text, terminal_width(sys.stderr) - 1)}")
        else:
            sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
