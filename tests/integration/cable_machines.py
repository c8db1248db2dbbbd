"""Machines for tests of cables: a network namespace and a mount namespace each, joined by veth pairs.

`Lab` has machines that outlive the processes on them, so that one of these can be killed. `Side` is such a process: it
does on its machine what it is told.
"""

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.programs.waiting import CABLES_WITHIN_S, wait_until
from resources.libraries.python.errors import ConfigError, CsitError, Unsupported
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.measurements.counters import InterfaceCounters
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.plan import Flow, Plan
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.result import MeasurementRequest
from resources.libraries.python.planning.names import GENERATOR
from resources.libraries.python.testbed.deployment.parts import ABSENT, Parts
from resources.libraries.python.testbed.kinds.machine import TestbedMachine
from tests.integration.local_fabric import send

PROJECT = Path(__file__).parents[2]
_SIMPLE = (ConfigError, Unsupported)
# The limit of real-time threads is the kernel's, and belongs to whoever has the real machine.
_MACHINE = """
mount -t tmpfs tmpfs /run && mount -t sysfs sysfs /sys && ip link set lo up &&
echo 950000 > /run/limit && mount --bind /run/limit /proc/sys/kernel/sched_rt_runtime_us && echo up && exec sleep 600
"""


class Lab:
    """Machines joined by cables."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._held = ExitStack()
        self._holders: dict[str, subprocess.Popen[str]] = {}
        for name in names:
            holder = subprocess.Popen(
                ["unshare", "--mount", "--net", "--propagation", "private", "sh", "-c", _MACHINE],
                stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
            self._held.callback(_end, holder)
            assert holder.stdout is not None
            assert holder.stdout.readline() == "up\n"
            self._holders[name] = holder

    def close(self) -> None:
        self._held.close()

    def enter(self, name: str) -> list[str]:
        """The beginning of a command line that runs on a machine."""
        # Its root too: where this machine is itself a change of root, a mount namespace alone leads out of that.
        return ["nsenter", "--mount", "--net", "--root", "--wd", "--target", str(self._holders[name].pid)]

    def run(self, name: str, *argv: str) -> str:
        done = subprocess.run([*self.enter(name), *argv], check=True, capture_output=True, text=True)
        return done.stdout

    def cable(self, a: tuple[str, str], b: tuple[str, str], *, queues: int = 1) -> None:
        """Join a port of one machine with one of another; both are down, with names as of a distribution."""
        (here, port), (there, peer) = a, b
        many = ["numrxqueues", str(queues), "numtxqueues", str(queues)]
        far = [str(self._holders[there].pid), *many]
        self.run(here, "ip", "link", "add", port, *many, "type", "veth", "peer", "name", peer, "netns", *far)

    def state(self, name: str) -> dict[str, dict[str, object]]:
        """Everything that a user can see of the ports of a machine."""
        found = {}
        for row in json.loads(self.run(name, "ip", "-json", "-details", "link")):
            port = row["ifname"]
            found[port] = {
                **{key: row.get(key) for key in ("address", "mtu", "group", "promiscuity", "num_rx_queues", "master")},
                "up": "UP" in row["flags"],
                "promiscuous": "PROMISC" in row["flags"],
                "features": self.run(name, "ethtool", "-k", port),
                "queues": self.run(name, "ethtool", "-l", port)
                if row.get("linkinfo", {}).get("info_kind") == "veth"
                else "",
                "threaded": self.run(name, "cat", f"/sys/class/net/{port}/threaded"),
            }
        return found

    def namespaces(self, name: str) -> list[str]:
        return [line.split()[0] for line in self.run(name, "ip", "netns", "list").splitlines()]

    @contextmanager
    def side(self, name: str, topology: Path) -> Iterator["Remote"]:
        """A process of this project on a machine."""
        process = subprocess.Popen(
            [*self.enter(name), sys.executable, "-m", "tests.integration.cable_machines", name, str(topology)],
            cwd=PROJECT, env={**os.environ, "PYTHONPATH": str(PROJECT)},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        try:
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

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


class Side:
    """What is done on a machine."""

    def __init__(self, node: str, topology: Path) -> None:
        self.machine = TestbedMachine(load_topology(topology), node)
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

    def run(self, trial: Trial) -> TrialResult:
        assert self.share is not None
        return self.share.generator.run(trial)

    def counters(self) -> dict[str, InterfaceCounters]:
        return self.fabric.counters(self.fabric.owners)

    def affinity(self) -> dict[str, frozenset[int]]:
        return self.fabric.affinity(self.fabric.owners)

    def sampled(self) -> tuple[set[str], set[int]]:
        assert self.share is not None and self.share.sampler is not None
        sample = self.share.sampler.read()
        return set(sample.threads), set(sample.cpus)

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
    side = Side(sys.argv[1], Path(sys.argv[2]))
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
