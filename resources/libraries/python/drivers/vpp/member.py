"""One VPP of a plan: the same for the vSwitch and for an NF, but for what it does with packets."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import zip_longest
from pathlib import Path

from resources.libraries.python.drivers.host.cpu.thread_scheduling import favour
from resources.libraries.python.drivers.host.programs.daemons import NO_ENTRY, ExecContext
from resources.libraries.python.drivers.host.programs.disturbances import MOVED, Steps, process_steps
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.drivers.vpp import Vpp, acl, configuration, show_output
from resources.libraries.python.drivers.vpp.installation import Site, plugin_folder, program
from resources.libraries.python.drivers.vpp.instance import VppInstance
from resources.libraries.python.drivers.vpp.interfaces import PLUGINS, InterfaceKind, VppInterface
from resources.libraries.python.drivers.vpp.show_output import counted
from resources.libraries.python.errors import CommandFailed, CsitError
from resources.libraries.python.model.core_map import ThreadRole
from resources.libraries.python.model.measurements.counters import InterfaceCounters
from resources.libraries.python.model.measurements.disturbance import PartEvent
from resources.libraries.python.model.measurements.node_costs import NodeCost

_CONNECTED_S = 20.0


def plugins_for(interfaces: Iterable[VppInterface], settings: Vpp) -> tuple[str, ...]:
    """The plugins that some interfaces, and an access list, need."""
    return tuple(sorted({PLUGINS[each.kind] for each in interfaces if each.kind in PLUGINS}.union(acl(settings))))


class VppMember:
    """One VPP of a cell: its process, its interfaces, its threads."""

    def __init__(self, site: Site, owner: str, what: str, interfaces: Sequence[VppInterface]) -> None:
        self._site = site
        self.owner = owner
        self._what = what
        self.interfaces = tuple(interfaces)
        cores = site.plan.cores
        self._placement = configuration.place(cores.cpus(owner, ThreadRole.MAIN)[0], cores.cpus(owner))
        self._waiting = site.waiting(owner)
        self._pages: configuration.HugePageChoice | None = None
        self._favoured = False
        self._instance: VppInstance | None = None
        self._access_lists = 0
        self._host_ports = {port for each in self.interfaces if each.kind.is_of_kernel for port, _ in each.ports}

    def start(
        self,
        pages: configuration.HugePageChoice,
        plugins: tuple[str, ...],
        entry: ExecContext = NO_ENTRY,
        *,
        logs_commands: bool = True,
    ) -> None:
        """Start it in the owner's network namespace; it is not ready yet.

        `entry`: What it enters before it runs, such as a container.
        `logs_commands`: Whether its commands are written to a file.

        Raises:
            CsitError: It cannot be started.
        """
        site, settings = self._site, self._site.settings
        startup = configuration.Startup(
            name=f"csit-{self.owner}",
            folder=site.folder / self.owner,
            placement=self._placement,
            heap_mb=settings.main_heap_mb,
            buffers=settings.buffers,
            pages=pages,
            waiting=self._waiting,
            plugins=plugins,
            plugin_folder=plugin_folder(site.prefix),
            devices=tuple(
                each for each in self.interfaces if each.kind is InterfaceKind.DPDK and each.pci_address is not None
            ),
            largest_frame_bytes=site.largest_frame_bytes,
            logs_commands=logs_commands,
        )

        def argv(conf: Path) -> Sequence[str]:
            return (str(program(site.prefix)), "-c", str(conf))

        self._pages = pages
        self._instance = VppInstance(self._what, startup, site.machine, argv, entry)
        # VPP's rdma driver looks for the PCI device of a port of the kernel there.
        sysfs = any(each.kind is InterfaceKind.RDMA for each in self.interfaces)
        self._instance.start(partial(site.fabric.run_inside, self.owner, sysfs=sysfs))

    @property
    def instance(self) -> VppInstance:
        """The running program; there is one once it has been started."""
        assert self._instance is not None  # noqa: S101 - a mistake of the caller
        return self._instance

    def make_interfaces(self) -> None:
        """Make its interfaces; they are down yet."""
        with suppress(CommandFailed):  # an older VPP polls shared memory until `place_queues` says otherwise
            self.instance.do([configuration.default_mode(self._waiting.rx_mode)])
        self.instance.do(configuration.making(self.interfaces, self._site.largest_frame_bytes))
        if self._site.settings.acl_rules:
            self.instance.do([self._access_list(), *configuration.access_by(self._names)])
            self._check_access_list()

    @property
    def _names(self) -> list[str]:
        """VPP's name of each port."""
        return [each.name_of(vlan) for each in self.interfaces for _, vlan in each.ports]

    def _access_list(self) -> str:
        """Write the access list to a file, and return the command that makes it, or replaces it, as a whole."""
        self._access_lists += 1
        file = self._site.folder / self.owner / "access-list.cli"
        file.write_text(configuration.access_list(self._site.settings.acl_rules, self._access_lists), encoding="ascii")
        return f"exec {file}"

    def _check_access_list(self) -> None:
        """See that VPP has taken the access list: it says nothing, whether it has or not.

        Raises:
            CsitError: It has not.
        """
        rules, tag = show_output.access_list(self.instance.ask("show acl-plugin acl index 0"))
        if (rules, tag) != (self._site.settings.acl_rules, str(self._access_lists)):
            raise CsitError(
                f"{self._what} has {rules} rules in its access list (tag {tag or 'none'}), not "
                f"{self._site.settings.acl_rules} (tag {self._access_lists})"
            )
        looked_up = show_output.with_access_list(self.instance.ask("show acl-plugin interface"))
        if looked_up != len(self._names):
            raise CsitError(f"{self._what} has its access list on {looked_up} ports, not {len(self._names)}")

    def wait_connected(self) -> None:
        """Wait until its shared memory has its other ends, and until it can be sent to where it is the slave.

        A slave gives the master buffers when it first looks at its queue. One that waits for interrupts may miss the
        one that makes it, and then no other one follows: so it polls until it has read it.

        Raises:
            NotReady: Some has not; the text says which and, where VPP knows, why.
        """
        what = f"{self._what}: shared memory"
        wait_until(what, lambda: ", ".join(self._not_connected()), _CONNECTED_S, pause_s=0.02)
        if hungry := self._not_fed():
            queues = {each.name: range(each.queues) for each in self.interfaces}
            self.instance.do(
                f"set interface rx-mode {name} queue {queue} polling" for name in hungry for queue in queues[name]
            )
            wait_until(f"{what} buffers", lambda: ", ".join(self._not_fed()), _CONNECTED_S, pause_s=0.1)

    def _not_fed(self) -> list[str]:
        """Memifs of which it is the slave and has given no buffers yet."""
        slaves = {each.name for each in self.interfaces if each.kind is InterfaceKind.MEMIF and not each.master}
        rows = show_output.memifs(self.instance.ask("show memif")) if slaves else {}
        return [name for name, row in rows.items() if name in slaves and not row.fed]

    def _not_connected(self) -> list[str]:
        found: dict[str, show_output.SharedMemoryLink] = {}
        for kind, command, read in (
            (InterfaceKind.MEMIF, "show memif", show_output.memifs),
            (InterfaceKind.VHOST, "show vhost-user", show_output.vhosts),
        ):
            if any(each.kind is kind for each in self.interfaces):
                found.update(read(self.instance.ask(command)))
        wanted = [each.name for each in self.interfaces if each.kind in (InterfaceKind.MEMIF, InterfaceKind.VHOST)]
        lost = [(name, found.get(name, show_output.SharedMemoryLink(connected=False))) for name in wanted]
        return [
            f"{name} is not connected{f' ({row.why})' if row.why else ''}" for name, row in lost if not row.connected
        ]

    def _favour_threads(self) -> None:
        """Let its threads go before other ordinary ones, in short turns; not before all queues are as they should be.

        Until then a worker may poll that is to wait for interrupts, and take the time in which guests boot.

        As real-time threads, like the kernel's that receive from ports, they would stop their CPU for all others: one
        that polls for good, one that waits for interrupts for half a second after each command, in which VPP lets it
        spin.
        """
        for number, thread in self.instance.threads().items():
            if number or not self._placement.workers:
                favour(thread)

    def _queues(self) -> show_output.RxPlacement:
        return show_output.rx_placement(self.instance.ask("show interface rx-placement"))

    def place_queues(self) -> show_output.RxPlacement:
        """Move receive queues to their planned workers; return where they are then."""
        queues = self._queues()
        if commands := list(configuration.moves(self.interfaces, self._placement, self._waiting.rx_mode, queues)):
            self.instance.do(commands)
            queues = self._queues()
        if not self._favoured and all(each.name in queues for each in self.interfaces):
            self._favour_threads()
            self._favoured = True
        return queues

    def affinity(self) -> dict[str, frozenset[int]]:
        """CPUs on which the threads of each receive queue may really run; empty where one is gone."""
        received = self._site.fabric.affinity([self.owner])
        none = frozenset[int]()
        polled = {port: each for each in self.interfaces for port, _ in each.ports}
        ports = [port for port in self._site.plan.ports(self.owner) if port.interface in polled]
        if self.instance.problem():
            return {name: none for port in ports for name in port.queue_names}
        queues, running = self.place_queues(), self.instance.affinity()
        found = {}
        for port in ports:
            kernel = received.get(port.interface)
            there = queues.get(polled[port.interface].name, ())
            for name, queue in zip_longest(port.queue_names, there[: len(port.queues)]):
                cpus = none if queue is None else running.get(queue.thread, none)
                found[name] = cpus if kernel is None else (cpus | kernel if cpus and kernel else none)
        return found

    def steps(self, event: PartEvent, target: str, restart: Callable[[], object]) -> Steps:
        """Steps of an event.

        `target`: The part that it happens to, for a refusal.
        `restart`: Starts it again after it was killed.

        Raises:
            Unsupported: It cannot happen to it.
            CsitError: It has ended.
        """
        if event is PartEvent.MOVE:
            workers = self._placement.workers
            data = [thread for number, thread in self.instance.threads().items() if number or not workers]
            return Steps(MOVED, partial(self._site.fabric.move_threads, self.owner, data))
        if event is PartEvent.RELOAD and (rules := self._site.settings.acl_rules):
            replace = partial(self.instance.do, [self._access_list()])
            return Steps(f"access list of {rules} rules replaced", replace, after=self._check_access_list)
        return process_steps(event, target, lambda: [self.instance.pid], restart)

    def counters(self) -> dict[str, InterfaceCounters]:
        """Counters by port. What the threads did since the last reading is kept for the facts."""
        instance = self.instance
        # First: VPP reads what a NIC has missed when this is shown, and otherwise once in 10 s.
        rings = show_output.full_rings(instance.ask("show hardware-interfaces"))
        of_vpp = show_output.interfaces(instance.ask("show interface"))
        of_kernel: Mapping[str, InterfaceCounters] = (
            self._site.fabric.counters([self.owner]) if self._host_ports else {}
        )
        instance.note_work()
        return dict(counted(self.interfaces, of_vpp, rings, of_kernel))

    def without_link(self) -> tuple[str, ...]:
        """Ports of cables that have no link: by VPP where it drives them, else by the kernel."""
        own = [each.name for each in self.interfaces if each.kind.is_of_nic]
        links = show_output.links(self.instance.ask("show hardware-interfaces")) if own else {}
        polled = (name for name in own if not links.get(name, False))
        return tuple(dict.fromkeys((*polled, *self._site.fabric.cables_down(self.owner))))

    def accounts(self) -> tuple[NodeCost, ...]:
        """Clocks per packet and vectors per call of each graph node, by thread."""
        return show_output.node_costs(self.owner, self.instance.ask("show runtime"))

    def facts(self) -> dict[str, str]:
        """How it runs and what it did."""
        found = {
            "threads": str(self._placement),
            "data threads": self._waiting.data_threads,
            "waiting": str(self._waiting),
            "pages": self._pages.why if self._pages else "",
            "access list": f"{rules} rules on each port" if (rules := self._site.settings.acl_rules) else "",
        }
        if not self.instance.problem():
            found["rx placement"] = ", ".join(
                f"{name}{f' queue {number}' if len(row) > 1 else ''} {_thread(queue)}"
                for name, row in sorted(self._queues().items())
                for number, queue in enumerate(row)
            )
            found["errors"] = show_output.losses(self.instance.ask("show errors"))
        if driven := [f"{each.name} by {each.kind}" for each in self.interfaces if each.pci_address]:
            found["physical ports"] = ", ".join(driven)
        if any(each.kind.is_of_nic for each in self.interfaces):
            found["buffers"] = f"{self._site.settings.buffers} on each NUMA node"
        found["work"] = "; ".join(map(str, self.instance.work))
        return {name: text for name, text in found.items() if text}

    def problems(self) -> tuple[str, ...]:
        """It has ended, an interface is down, shared memory lost its other end, a thread is gone."""
        try:
            return (problem,) if (problem := self.instance.problem()) else self._problems_of_running()
        except CsitError as error:
            return (str(error),)

    def _problems_of_running(self) -> tuple[str, ...]:
        states = show_output.interfaces(self.instance.ask("show interface"))
        down = [f"{name} of {self._what} is down" for name in self._names if name not in states or not states[name].up]
        lost = [f"{self._what}: {text}" for text in self._not_connected()]
        running = self.instance.threads()
        gone = [
            f"worker {number} of {self._what} is gone"
            for number in range(len(self._placement.workers))
            if number + 1 not in running
        ]
        return (*down, *lost, *gone, *self._site.fabric.problems([self.owner]))


def _thread(queue: show_output.Queue) -> str:
    return f"{'main' if queue.thread == 0 else f'worker {queue.thread - 1}'} ({queue.mode})"
