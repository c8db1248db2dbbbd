"""`emulate`: a testbed of emulated machines with PCI NICs, on this computer."""

import shutil
import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import typer

from resources.libraries.python.emulation.image import MIRROR, cached, image
from resources.libraries.python.emulation.layout import MOST_QUEUES, EmulatedLayout
from resources.libraries.python.emulation.machine import EmulatedNicModel
from resources.libraries.python.emulation.testbed import EmulatedTestbed, State, check, state_folder
from resources.libraries.python.errors import ConfigError

_WITHIN_S = 600.0
_USUAL_S = 30.0
"""From start to SSH on two cores that nothing else uses."""


class Action(StrEnum):
    """What to do."""

    UP = "up"
    STATUS = "status"
    DOWN = "down"
    BUILD = "build"


def emulate(
    action: Annotated[Action, typer.Argument(help="Start it, show it, end it, or only make the machines' image.")],
    nodes: Annotated[int, typer.Option(min=2, max=3, help="Machines: TG and DUT1, or DUT2 as well.")] = 2,
    nic: Annotated[
        EmulatedNicModel, typer.Option(help="NIC of the ports that are measured on.")
    ] = EmulatedNicModel.VIRTIO,
    queues: Annotated[
        int, typer.Option(min=1, max=MOST_QUEUES, help="Receive queues of virtio ports; takes root.")
    ] = 1,
    topology: Annotated[Path | None, typer.Option(help="Also write the topology file here.")] = None,
    name: Annotated[str, typer.Option(help="Of the testbed, where there are several.")] = "testbed",
    kvm: Annotated[bool, typer.Option("--kvm", help="Use KVM, which has to work here, instead of emulation.")] = False,
    mirror: Annotated[str, typer.Option(help="Debian mirror that the image's packages come from.")] = MIRROR,
) -> None:
    """Start a testbed of emulated machines with PCI NICs, to learn the lab world or to change it without a lab.

    QEMU machines with two NUMA nodes, SMT, an IOMMU, huge pages and isolated CPUs, joined by virtual cables, reached
    over SSH. They run in the background until they are ended, and survive a reboot of their own. The first start makes
    their disk of Debian packages, which takes root, some minutes, and 0.6 GB in the cache; a later one takes half a
    minute. Rates are those of software emulation, and no density figures.

    \b
    ./csit emulate up                          prints the path of the topology file
    ./csit doctor "$(./csit emulate status)"   status prints the path too, and the machines on stderr
    ./csit emulate down
    """  # noqa: D301 - \b keeps the lines of the examples apart
    testbed = EmulatedTestbed(state_folder() / _checked(name))
    match action:
        case Action.UP:
            if queues > 1 and nic is not EmulatedNicModel.VIRTIO:
                raise ConfigError(f"--queues {queues}: only virtio ports have more than one here, not {nic}")
            accelerator: Literal["tcg", "kvm"] = "kvm" if kvm else "tcg"
            layout = EmulatedLayout(nodes=3 if nodes == 3 else 2, nic=nic, accelerator=accelerator, queues=queues)
            _up(testbed, layout, mirror)
            _show(testbed)
            if topology is not None:
                shutil.copyfile(testbed.topology, topology)
        case Action.STATUS:
            if not _show(testbed):
                raise typer.Exit(1)
        case Action.DOWN:
            typer.echo("ended" if testbed.down() else "nothing was running", err=True)
        case Action.BUILD:
            with _Line() as line:
                made = image(mirror, line.step)
            typer.echo(made.disk.parent)


def _checked(name: str) -> str:
    if not name.replace("-", "").isalnum() or len(name) > 32:
        raise ConfigError(f"--name {name}: letters, digits and '-', at most 32")
    return name


def _up(testbed: EmulatedTestbed, layout: EmulatedLayout, mirror: str) -> None:
    record, states = testbed.record, testbed.states()
    if record is not None and record.layout == layout and all(state.answers for state in states):
        typer.echo("already running", err=True)
        return
    check(layout)
    if cached() is None:
        typer.echo("making the machines' image of Debian packages; once, for some minutes", err=True)
    with _Line() as line:
        testbed.up(layout, image(mirror, line.step), _WITHIN_S, line.wait)


def _show(testbed: EmulatedTestbed) -> bool:
    """Machines on stderr, the topology on stdout; whether all machines are up."""
    states = testbed.states()
    if not states:
        others = ", ".join(f"--name {name}" for name in _others(testbed))
        hint = f", but there is {others}" if others else "; start one with ./csit emulate up"
        typer.echo(f"no testbed named '{testbed.folder.name}' is running{hint}", err=True)
        return False
    for state in states:
        typer.echo(f"{state.name:5} {_words(testbed, state)}", err=True)
    typer.echo(testbed.topology)
    return all(state.answers for state in states)


def _others(testbed: EmulatedTestbed) -> list[str]:
    """Names of other testbeds whose machines are there."""
    if not testbed.folder.parent.is_dir():
        return []
    folders = sorted(folder for folder in testbed.folder.parent.iterdir() if folder.is_dir())
    return [folder.name for folder in folders if folder != testbed.folder and EmulatedTestbed(folder).states()]


def _words(testbed: EmulatedTestbed, state: State) -> str:
    if state.pid is None:
        return f"ended; its log: {testbed.folder / state.name}.log"
    login = f"ssh -p {state.port} -i {testbed.folder}/key -o UserKnownHostsFile={testbed.folder}/known_hosts"
    answers = "up" if state.answers else "running, SSH does not answer"
    return f"{answers}, pid {state.pid}, {state.memory_mb} MB: {login} root@127.0.0.1"


class _Line:
    """Progress: a line on a terminal's stderr that is written over, or a line per step elsewhere."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._said = ""

    def __enter__(self) -> "_Line":
        return self

    def __exit__(self, *_: object) -> None:
        if sys.stderr.isatty() and self._said:
            sys.stderr.write("\r\x1b[K")

    def step(self, done: int, total: int, what: str) -> None:
        """A step of making the image."""
        spent = time.monotonic() - self._begun
        left = f", about {spent / done * (total - done):.0f} s left" if done and spent > 1 else ""
        self._say(f"step {done + 1} of {total}: {what.rstrip('.')}{left}")

    def wait(self, what: str, since_s: float, within_s: float) -> None:
        """Waiting for machines."""
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
        sys.stderr.write(f"\r\x1b[K{text}" if sys.stderr.isatty() else f"{text}\n")
        sys.stderr.flush()
