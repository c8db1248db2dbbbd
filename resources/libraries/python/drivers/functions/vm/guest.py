"""One running guest: a QEMU process with its threads on their CPUs, and the console that it writes to a file."""

import os
import re
import resource
import socket
import subprocess
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path

from resources.libraries.python.drivers.functions.vm.init import READY
from resources.libraries.python.drivers.functions.vm.qemu import Monitor
from resources.libraries.python.drivers.host.cpu import data_threads
from resources.libraries.python.drivers.host.cpu.thread_scheduling import favour
from resources.libraries.python.drivers.host.links.namespace_syscalls import aside
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.ownership.processes import end_of, is_stopped
from resources.libraries.python.drivers.host.programs.program_output import tail_of
from resources.libraries.python.errors import CsitError

_RUNAWAY_US = 120_000_000
"""CPU time without a rest after which the kernel kills a guest (RLIMIT_RTTIME)."""
_END_S = 5.0
"""How long a killed QEMU may take to end its threads."""


_CONTROL = re.compile(r"\x1b\[[0-9;?=]*[A-Za-z]|\x1bc|[\x00-\x09\x0b-\x1f\x7f]")
_TAIL_LINES = 15
_MAX_BOOT_BYTES = 4 << 20
"""Of a console, which a guest may fill: more than the kernel writes in a boot."""


class Console:
    """The console of one guest, from its beginning."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._boot_at = 0

    def text(self) -> str:
        """Its end, without what only moves a cursor."""
        return _CONTROL.sub("", tail_of(self.path, _MAX_BOOT_BYTES))

    @property
    def ready(self) -> bool:
        """Whether the guest routes, as it reports at the end of each boot."""
        try:
            with self.path.open("rb") as console:
                console.seek(self._boot_at)
                return READY.encode() in console.read(_MAX_BOOT_BYTES)
        except FileNotFoundError:
            return False

    def expect_boot(self) -> None:
        """Disregard earlier boots: the guest is about to boot again."""
        self._boot_at = self.path.stat().st_size

    def tail(self) -> str:
        """Its last lines, for an error."""
        lines = [line.strip() for line in self.text().splitlines() if line.strip()]
        panic = [line for line in lines if "Kernel panic" in line]
        # What the kernel prints below a panic are registers and addresses; its reason would scroll out of sight.
        shown = [line for line in panic[:1] if line not in lines[-_TAIL_LINES:]] + lines[-_TAIL_LINES:]
        return "\n".join(shown) if shown else "nothing on the console"


def spawn(
    argv: Sequence[str], console: Path, descriptors: Sequence[int], cpus: Collection[int]
) -> subprocess.Popen[bytes]:
    """Start QEMU with its console in a file; all its threads begin on these CPUs."""

    def work() -> subprocess.Popen[bytes]:
        os.sched_setaffinity(0, cpus)  # of this thread, and so of what it starts
        with console.open("wb") as out:
            return subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, pass_fds=descriptors
            )

    return aside(work)


class Guest:
    """A guest, from `start` to `wait`.

    `machine`: Keeps its process on record, so that the next run ends it if this one is killed.
    """

    def __init__(self, name: str, console: Path, machine: MachineLock) -> None:
        self.name = name
        self.console = Console(console)
        self._machine = machine
        self._process: subprocess.Popen[bytes] | None = None
        self._monitor: Monitor | None = None
        self._vcpus: tuple[int, ...] = ()
        self.qemu = ""

    def start(
        self,
        argv: Callable[[int], Sequence[str]],
        descriptors: Sequence[int],
        vcpu_cpus: Sequence[int],
        emulator_cpus: Collection[int],
    ) -> None:
        """Start QEMU, put its threads where they belong, let the guest boot.

        `argv`: The command line, given the descriptor of the monitor.
        `descriptors`: Of taps, and of vhost-net where there is one.
        `emulator_cpus`: CPUs of all other threads.

        Raises:
            CsitError: QEMU did not start; the text has its words.
            Unsupported: A thread cannot be placed.
        """
        near, far = socket.socketpair()
        try:
            command = argv(far.fileno())
            self._process = spawn(command, self.console.path, (*descriptors, far.fileno()), emulator_cpus)
            self._machine.claim_process(self._process.pid)
        except BaseException:
            near.close()
            raise
        finally:
            far.close()
        try:
            self._monitor = Monitor(self.name, near)
        except CsitError as error:
            near.close()
            raise CsitError(f"QEMU did not start for {self.name} ({error}):\n{self.console.tail()}") from error
        self.qemu = self._monitor.version
        self._vcpus = tuple(row["thread-id"] for row in self._monitor.ask("query-cpus-fast"))
        for thread, cpu in zip(self._vcpus, vcpu_cpus, strict=True):
            data_threads.pin(thread, cpu)
        self._monitor.ask("cont")

    def reset(self) -> None:
        """Reset the guest: its kernel boots again. Its threads are ordinary ones until it gets priorities anew.

        Raises:
            CsitError: QEMU refused, or has ended.
        """
        if self._process is None or self._monitor is None:
            raise CsitError(self.ended())
        data_threads.make_ordinary(self._process.pid)
        self.console.expect_boot()
        self._monitor.ask("set-action", reboot="reset")
        self._monitor.ask("system_reset")

    def end_on_reboot(self) -> None:
        """Let QEMU end when the guest's kernel reboots by itself, as after a panic."""
        if self._monitor is not None:
            self._monitor.ask("set-action", reboot="shutdown")

    def make_realtime(self, *, emulator: bool, rests: bool = True) -> None:
        """Let the guest's data threads go before every ordinary one, as those of ports do.

        Not before the guest is ready: it works hard while it boots, and others on its CPU may be booting too.

        `emulator`: Whether QEMU's main thread copies packets and so is a data thread.
        `rests`: Whether the guest rests as soon as it has no packet. One with programs may compute for long: then
          QEMU's main thread, which brings timers and packets, goes before the vCPUs. With equal priorities it would
          never run, and a guest that waits for it never rest.

        Raises:
            Unsupported: The kernel refuses.
        """
        if self._process is None:
            return
        # A guest that runs away would have its CPU for itself for ever; one with packets to forward rests now and then.
        resource.prlimit(self._process.pid, resource.RLIMIT_RTTIME, (_RUNAWAY_US, _RUNAWAY_US))
        if emulator:
            data_threads.make_realtime(self._process.pid, 1 if rests else 2)
        for thread in self._vcpus:
            data_threads.make_realtime(thread)

    def favour(self, vcpus: Sequence[int], *, emulator: bool) -> None:
        """Let vCPUs that may never rest go before other ordinary threads; in real time they would stop their CPUs.

        `emulator`: whether QEMU's main thread copies packets and so is a data thread.

        Raises:
            Unsupported: The kernel refuses.
        """
        for number in vcpus:
            favour(self._vcpus[number])
        if emulator and self._process is not None:
            favour(self._process.pid)

    @property
    def pid(self) -> int | None:
        """PID of QEMU; None when it was not started."""
        return self._process.pid if self._process else None

    def ended(self) -> str:
        """Why there is no guest any more; empty while there is one."""
        if self._process is None:
            return f"{self.name} has no virtual machine"
        how = end_of(self._process)
        return f"the virtual machine of {self.name} {how}; its console ends with:\n{self.console.tail()}" if how else ""

    def problem(self) -> str:
        """Why the guest does not run: it has ended, is stopped by a signal, or lost vCPUs; empty while it runs."""
        if ended := self.ended():
            return ended
        if self._process is not None and is_stopped(self._process.pid):
            return f"the virtual machine of {self.name} is stopped (SIGSTOP)"
        lost = [f"vCPU {number} of {self.name}" for number in range(len(self._vcpus)) if not self.affinity(number)]
        if lost and self._process is not None:
            # QEMU ends no vCPU alone: it is ending, and how tells more than what it has lost so far.
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_S)
        return self.ended() or (f"{', '.join(lost)}: no longer running" if lost else "")

    def affinity(self, vcpu: int) -> frozenset[int]:
        """CPUs on which a vCPU may really run; empty when its thread is gone."""
        if self.ended() or vcpu >= len(self._vcpus):
            return frozenset()
        return data_threads.affinity({self.name: [self._vcpus[vcpu]]})[self.name]

    def kill(self) -> None:
        """End QEMU; `wait` waits for it. A guest has nothing to save, and QEMU's own way out took 5 s and more here."""
        if self._process is not None:
            self._process.kill()

    def wait(self) -> None:
        """Wait until QEMU has ended."""
        if self._monitor is not None:
            self._monitor.close()
            self._monitor = None
        if self._process is not None:
            process, self._process = self._process, None
            process.wait()
            self._machine.release_process(process.pid)
        self._vcpus = ()
