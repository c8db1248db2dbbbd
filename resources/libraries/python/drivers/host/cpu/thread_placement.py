"""The data threads of a machine's ports: found, put on their planned CPUs, watched."""

from collections.abc import Iterable, Mapping, Sequence

from resources.libraries.python.drivers.host.cpu import data_threads
from resources.libraries.python.model.core_map import CoreMap
from resources.libraries.python.model.plan import Port


class DataThreads:
    """Kernel threads that receive from ports: one for a port that was made here, one or several for a physical one."""

    def __init__(self) -> None:
        self._physical: frozenset[str] = frozenset()
        self._found: dict[str, tuple[int, ...]] = {}
        self._receivers: dict[str, str] = {}

    def place(self, ports: Mapping[str, Sequence[Port]], cores: CoreMap, physical: Mapping[str, str]) -> None:
        """Find the threads of ports and let each run on its planned CPU, before every ordinary thread.

        Args:
            ports: By owner.
            cores: Has the owners' CPUs.
            physical: Physical ports: original interface names by the names in use.

        Raises:
            Unsupported: They are not to be seen, or cannot be pinned.
        """
        self._physical = frozenset(physical)
        self._receivers = {port.interface: port.receiver for row in ports.values() for port in row}
        made = data_threads.find(name for name in self._receivers.values() if name not in self._physical)
        self._found = {name: (thread,) for name, thread in made.items()} | data_threads.find_all(physical)
        for owner, row in ports.items():
            cpus = cores.cpus(owner)
            # Ports on a trunk have one receive thread, and so the same data thread in the plan.
            for receiver, data_thread in {port.receiver: port.data_thread for port in row}.items():
                for thread in self._found[receiver]:
                    data_threads.pin(thread, cpus[data_thread])
                    # The generator's share its core with its sending loop, which does not sleep in a trial: as ordinary
                    # threads they would get their turns late, and their rings would overflow. Those of the system under
                    # test share cores with each other where it is oversubscribed, and ordinary threads then preempt
                    # each other with work left to do. Measured side by side on 2 CPUs, 64 B, 0.5 s trials with a loss
                    # of 1e-4 at most: CSC 1x3 74 kpps ordinary and 188 kpps in real time, CSC 2x4 66 and 261 kpps; at
                    # overload CSC 1x8 gave back 85 and 159 kpps.
                    data_threads.make_realtime(thread)

    def ids(self) -> dict[str, tuple[int, ...]]:
        """Thread ids by receiving device."""
        return dict(self._found)

    def affinity(self, interfaces: Iterable[str]) -> dict[str, frozenset[int]]:
        """CPUs on which the threads of ports may really run; empty where one of them is gone."""
        receivers = {name: self._receivers[name] for name in interfaces if name in self._receivers}
        return data_threads.affinity({name: self._found[receiver] for name, receiver in receivers.items()})

    def wait_gone(self) -> None:
        """Wait until the threads of ports that were made here have ended.

        Those of physical ports may outlive their use: it is their driver's affair when they end.

        Raises:
            NotReady: Some have not.
        """
        data_threads.wait_gone({name: row[0] for name, row in self._found.items() if name not in self._physical})
