"""Configuration of one VPP: startup.conf, and commands for interfaces, RX queues on workers, routes of an NF. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from typing import Literal

from resources.libraries.python.drivers.vpp import Vpp, need, pages_2mb
from resources.libraries.python.drivers.vpp.interfaces import VppInterface, ring
from resources.libraries.python.drivers.vpp.show_output import RxPlacement
from resources.libraries.python.model.plan import NfPlan
from resources.libraries.python.planning.address_bounds import NO_SENDER
from resources.libraries.python.rendering import render

RxMode = Literal["polling", "interrupt", "adaptive"]
_SLEEP_US = 100
"""How long an idle main thread sleeps where it shares its core."""


@dataclass(frozen=True, slots=True)
class WorkerPlacement:
    """CPUs of the threads of one VPP. It uses a CPU for one of its threads only."""

    main: int
    """Logical CPU of the main thread."""
    workers: tuple[int, ...]
    """Logical CPU of each worker, ascending as VPP numbers them; empty where the main thread does their work."""
    planned: tuple[int, ...]
    """Logical CPU of each data thread of the plan."""

    def worker_of(self, data_thread: int) -> int | None:
        """Number of the worker that does the work of a planned data thread; None for the main thread.

        Where several planned threads share a CPU, one worker does the work of all of them.
        """
        if not self.workers:
            return None
        cpu = self.planned[data_thread]
        return self.workers.index(cpu) if cpu in self.workers else 0

    def __str__(self) -> str:
        if not self.workers:
            return f"main thread on CPU {self.main} does all"
        numbers = ", ".join(map(str, self.workers))
        return f"main thread on CPU {self.main}, workers on CPU {numbers}"


def place(main: int, data: Sequence[int]) -> WorkerPlacement:
    """Give planned CPUs to VPP's threads.

    `data`: Planned for data threads, in order; some may be the same where a plan is folded onto few cores.
    """
    workers = tuple(sorted({cpu for cpu in data if cpu != main}))
    return WorkerPlacement(main, workers, tuple(data))


@dataclass(frozen=True, slots=True)
class HugePageChoice:
    """Page size in the notation of startup.conf, and the reason."""

    size: str
    why: str


def choose_pages(vpp: Vpp, instances: int, free_2mb: int, free_1gb: int = 0) -> HugePageChoice:
    """Choose huge pages of 2 MB or 1 GB for some instances on one NUMA node where enough are free, else pages of 4 KB.

    `free_2mb`: free huge pages of 2 MB.
    `free_1gb`: free huge pages of 1 GB.
    """
    needed, large = pages_2mb(vpp) * instances, need(vpp).pages_1gb * instances
    if free_2mb >= needed:
        return HugePageChoice("2m", f"huge pages of 2 MB: {needed} of {free_2mb} free ones")
    if free_1gb >= large:
        return HugePageChoice("1g", f"huge pages of 1 GB: {large} of {free_1gb} free ones")
    lacking = f"{needed} huge pages of 2 MB or {large} of 1 GB needed, {free_2mb} and {free_1gb} free"
    return HugePageChoice("4k", f"pages of 4 KB: {lacking}")


@dataclass(frozen=True, slots=True)
class IdleBehaviour:
    """Behaviour of threads without packets."""

    rx_mode: RxMode
    sleep_us: int
    """Sleep of the main thread, each time it has looked for work; 0 for never."""

    @property
    def data_threads(self) -> str:
        """As verdicts read it: whether the time that they run says something about their load."""
        return "wait for interrupts" if self.rx_mode == "interrupt" else "poll"

    def __str__(self) -> str:
        sleep = f"main thread sleeps {self.sleep_us} µs" if self.sleep_us else "no sleep"
        return f"receive queues in {self.rx_mode} mode, {sleep}"


def waiting(settings: Vpp, *, oversubscribed: bool) -> IdleBehaviour:
    """Decide it: polling on cores of its own, interrupts where cores are shared.

    A worker that polls never sleeps, so on a shared core it takes the time in which others would do the work that it
    waits for. An honest placement is measured as VPP is used: polling.
    """
    mode: RxMode = "interrupt" if oversubscribed else "polling"
    sleep_us = _SLEEP_US if oversubscribed else 0
    return IdleBehaviour(
        rx_mode=mode if settings.rx_mode == "auto" else settings.rx_mode,
        sleep_us=sleep_us if settings.poll_sleep_us == "auto" else settings.poll_sleep_us,
    )


@dataclass(frozen=True, slots=True)
class Startup:
    """All that startup.conf says."""

    name: str
    """Unique on the machine; of its shared memory."""
    folder: Path
    """Private: sockets, pid file, log of commands."""
    placement: WorkerPlacement
    heap_mb: int
    buffers: int
    pages: HugePageChoice
    waiting: IdleBehaviour
    plugins: tuple[str, ...]
    """Names without `_plugin.so`; no other one is loaded."""
    plugin_folder: Path | None = None
    """None for where VPP looks by itself."""
    devices: tuple[VppInterface, ...] = ()
    """Physical ports that DPDK drives. Where no driver is named it takes vfio-pci behind an IOMMU."""
    largest_frame_bytes: int = 1518
    cli_address: str = ""
    """Where it takes commands instead, by TCP; empty for a socket in its folder."""
    logs_commands: bool = True
    """Whether commands are written to a file; not where keys are among them."""

    @property
    def cli_socket(self) -> Path:
        """Where it takes commands."""
        return self.folder / "cli.sock"

    def text(self) -> str:
        """The file."""
        return render("vpp-startup.conf.j2", {"vpp": self, "poll_sleep_us": self.waiting.sleep_us})


_PERMIT = ("permit src ::/0 dst ::/0", "permit src 0.0.0.0/0 dst 0.0.0.0/0")
"""VPP refuses a rule whose source and destination are not of one version of IP; what is not said is 0.0.0.0/0."""


def commands(template: str, values: Mapping[str, object]) -> tuple[str, ...]:
    """The commands that a template gives, one from each line; lines that begin with # are remarks."""
    lines = (" ".join(line.split()) for line in render(template, values).splitlines())
    return tuple(line for line in lines if line and not line.startswith("#"))


def making(interfaces: Sequence[VppInterface], largest_frame_bytes: int) -> tuple[str, ...]:
    """Make interfaces with the plan's names; they are down yet."""
    return commands("vpp-interfaces.j2", {"interfaces": interfaces, "ring": ring(largest_frame_bytes)})


def default_mode(rx_mode: RxMode) -> str:
    """Command that sets how queues wait that will come into being. Older VPPs do not know it."""
    return f"set interface default rx-mode {rx_mode}"


def moves(
    interfaces: Sequence[VppInterface], placement: WorkerPlacement, rx_mode: RxMode, shown: RxPlacement
) -> Iterator[str]:
    """Move receive queues to the workers that are planned for them, and let these wait as they should.

    `shown`: where the queues are. One that is not there is passed over: shared memory has queues only while its other
    end is there. A virtual NIC may have more of them than are planned; those take turns on the same workers.
    """
    for each in interfaces:
        for number, queue in enumerate(shown.get(each.name, ())):
            worker = placement.worker_of(each.data_threads[number % each.queues])
            place = f"{each.name} queue {number}"
            if queue.thread != (0 if worker is None else worker + 1):
                yield f"set interface rx-placement {place} {'main' if worker is None else f'worker {worker}'}"
            if queue.mode != rx_mode:
                yield f"set interface rx-mode {place} {rx_mode}"


def routing(function: NfPlan, tables: tuple[int, int] = (0, 0)) -> tuple[str, ...]:
    """Addresses, static neighbours and routes of both sides, then bring them up.

    `function`: Its interfaces are made and named already.
    `tables`: Routing tables of the left and the right side, which are there; 0 is the one of all others.
    """
    return commands("vpp-router.j2", {"sides": tuple(zip((function.left, function.right), tables, strict=True))})


def access_list(rules: int, version: int) -> str:
    """A file of commands that makes an access list, the first one, which lets every packet of a plan pass.

    `rules`: How many it has, at least 1; none but the last ones match, of IPv4 and of IPv6.
    `version`: Its tag. Those after 1 replace the one that is there.
    """
    senders = (IPv4Address(NO_SENDER + number) for number in range(max(0, rules - len(_PERMIT))))
    rows = [*(f"deny src {sender}/32" for sender in senders), *_PERMIT[-rules:]]
    return f"set acl-plugin acl {'index 0 ' if version > 1 else ''}tag {version} {' , '.join(rows)}\n"


def access_by(names: Iterable[str]) -> Iterator[str]:
    """Look all packets that interfaces receive up in the first access list."""
    return (f"set acl-plugin interface {name} input acl 0" for name in names)
