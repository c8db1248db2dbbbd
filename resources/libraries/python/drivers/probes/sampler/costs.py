"""What network functions use from one moment to another: CPU time, memory, misses of the cache."""

from collections.abc import Mapping
from contextlib import ExitStack

from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.probes.sampler.accounts import Amounts, TaskAccount
from resources.libraries.python.drivers.probes.sampler.perf import CACHE_MISSES, PerfCounters, PerfEvent
from resources.libraries.python.drivers.probes.sampler.tasks import tasks_on
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.counters import Cost
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.planning.names import is_vswitch

_PERCENT = 100


class LinuxCostMeter:
    """Fulfils `roles.watching.CostMeter` on this machine.

    Args:
        plan: Has the NFs and their ports.
        fabric: Has the ports and their data threads; started before `start`.
        event: What stands for misses of the cache.
    """

    def __init__(self, plan: Plan, fabric: Fabric, event: PerfEvent = CACHE_MISSES) -> None:
        self._plan = plan
        self._fabric = fabric
        self._event = event
        self._accounts: dict[str, TaskAccount] = {}
        self._before: dict[str, Amounts] = {}
        self._misses: PerfCounters | None = None
        self._missing = ""
        self._open = ExitStack()

    def start(self) -> None:
        self.stop()
        tasks = {name: row for name, row in tasks_on(self._plan, self._fabric).items() if not is_vswitch(name)}
        try:
            self._misses = PerfCounters({name: row.threads() for name, row in tasks.items()}, self._event)
            self._open.callback(self._misses.close)
        except Unsupported as error:
            self._missing = str(error)
        for name, row in tasks.items():
            account = self._accounts[name] = TaskAccount(row)
            self._open.callback(account.close)
        self._before = {name: account.read() for name, account in self._accounts.items()}

    def stop(self) -> Mapping[str, Cost]:
        misses = self._misses.read() if self._misses is not None else {}
        found = {
            name: _cost(self._before[name], account.read(), misses.get(name))
            for name, account in self._accounts.items()
            if name in self._before
        }
        self._open.close()
        self._accounts, self._before, self._misses = {}, {}, None
        return found

    def facts(self) -> Mapping[str, str]:
        return {"cache misses": self._missing} if self._missing else {}


def _cost(before: Amounts, after: Amounts, misses: int | None) -> Cost:
    """Of an NF without tasks nothing is known, and of one without processes no memory."""
    known = "cpu_percent" in before and "cpu_percent" in after
    memory = after.get("memory_bytes")
    return Cost(
        cpu_s=(after["cpu_percent"] - before["cpu_percent"]) / _PERCENT if known else None,
        memory_bytes=None if memory is None else round(memory),
        cache_misses=misses if known else None,
    )
