"""Processes on the machines of a lab: a `Side` does on its machine what it is told."""

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.programs.waiting import CABLES_WITHIN_S, wait_until
from resources.libraries.python.errors import ConfigError, CsitError, Unsupported
from resources.libraries.python.model.measurements.counters import InterfaceCounters
from resources.libraries.python.model.plan import Flow, Plan
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.result import MeasurementRequest
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.planning.names import GENERATOR
from resources.libraries.python.testbed.deployment.parts import ABSENT, Parts
from resources.libraries.python.testbed.kinds.machine import TestbedMachine
from tests.integration.lab import Lab
from tests.integration.local_fabric import send
from tests.integration.robot_runs import PROJECT, environment

_SIMPLE = (ConfigError, Unsupported)


@contextmanager
def side(lab: Lab, name: str, topology: Topology) -> Iterator["Remote"]:
    """A process of this project on a machine of a lab."""
    process = subprocess.Popen(
        lab.nodes[name].inside(sys.executable, "-m", "tests.integration.cable_machines", name),
        cwd=PROJECT, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stdin is not None
        pickle.dump(topology, process.stdin)  # a machine has files of its own
        yield Remote(process)
    finally:
        _end(process)


def _end(process: "subprocess.Popen[Any]") -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()


class Remote:
    """Tells a `Side` what to do."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process

    def do(self, what: str, *args: object) -> Any:
        self.ask(what, *args)
        return self.answer()

    def ask(self, what: str, *args: object) -> None:
        assert self.process.stdin is not None
        pickle.dump((what, args), self.process.stdin)
        self.process.stdin.flush()

    def answer(self) -> Any:
        assert self.process.stdout is not None
        answer = pickle.load(self.process.stdout)  # noqa: S301 - of our own child
        if isinstance(answer, Exception):
            raise answer
        return answer


class Side:
    """What is done on a machine."""

    def __init__(self, node: str, topology: Topology) -> None:
        self.machine = TestbedMachine(topology, node)
        self.share: Parts | None = None
        self._started = ExitStack()

    @property
    def fabric(self) -> Fabric:
        assert self.share is not None
        fabric = self.share.cables[0]
        assert isinstance(fabric, Fabric)
        return fabric

    def open(self) -> tuple[str, ...]:
        return self.machine.open()

    def lay(self, plan: Plan, size: str = "64B") -> None:
        """Make what all else stands on."""
        asked = cast(MeasurementRequest, SimpleNamespace(frame=frame(size), generator=None))
        self.share = self.machine.share(plan, asked)
        for part in self.share.cables:
            self._started.callback(part.stop)
            part.start()

    def start(self) -> None:
        """Start the parts, and wait for links as a deployment does. The other machine's cables are laid."""
        assert self.share is not None
        for part in (self.share.switch, self.share.functions, self.share.generator):
            self._started.callback(part.stop)
            part.start()
        if self.share.switch is not ABSENT[0]:
            wait_until("links of cables", lambda: ", ".join(self.without_link()), CABLES_WITHIN_S)

    def counters(self) -> dict[str, InterfaceCounters]:
        return self.fabric.counters(self.fabric.owners)

    def problems(self) -> tuple[str, ...]:
        assert self.share is not None
        roles = (self.share.switch, self.share.functions, self.share.generator)
        return tuple(problem for part in roles for problem in part.problems())

    def without_link(self) -> tuple[str, ...]:
        """What a deployment waits for."""
        assert self.share is not None
        return self.share.switch.without_link()

    def send(self, flow: Flow, count: int) -> None:
        """Send frames of a flow from the generator's namespace."""
        self.fabric.run_inside(GENERATOR, partial(send, flow, count))

    def inside(self, owner: str, *argv: str) -> str:
        """What a command says in the namespace of an owner."""
        command = ["ip", "netns", "exec", f"csit-{owner}", *argv]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def stop(self) -> tuple[str, ...]:
        self._started.close()
        return self.machine.leftovers(None)

    def leftovers(self) -> tuple[str, ...]:
        return self.machine.leftovers(None)

    def clean(self) -> tuple[str, ...]:
        return self.machine.clean()

    def close(self) -> None:
        self.machine.close()


def main() -> None:
    """Do what is told on standard input until it ends."""
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    side = Side(sys.argv[1], pickle.load(source))  # noqa: S301 - of our own parent
    while True:
        try:
            what, args = pickle.load(source)  # noqa: S301 - of our own parent
        except EOFError:
            return
        try:
            answer = getattr(side, what)(*args)
        except (CsitError, OSError) as error:
            # Some errors cannot be sent as they are.
            answer = type(error)(str(error)) if type(error) in _SIMPLE else CsitError(str(error))
        pickle.dump(answer, sink)
        sink.flush()


if __name__ == "__main__":
    main()
