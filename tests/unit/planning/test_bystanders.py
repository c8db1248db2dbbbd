"""Those who watch get a CPU that no packet needs, or none in particular."""

from resources.libraries.python.model.core_map import Thread, ThreadRole
from resources.libraries.python.planning.placement.cores import cpu_without_data


def thread(role: ThreadRole, cpu: int, owner: str = "system") -> Thread:
    return Thread(owner=owner, role=role, index=0, cpu=cpu)


def test_the_systems_cpu_is_taken_also_when_main_threads_share_it() -> None:
    data = thread(ThreadRole.DATA, 1, "nf-1-1")
    assert cpu_without_data([data, thread(ThreadRole.MAIN, 4, "vswitch"), thread(ThreadRole.SYSTEM, 4)]) == 4


def test_a_cpu_that_a_data_thread_shares_is_not_taken() -> None:
    system, generator = thread(ThreadRole.SYSTEM, 0), thread(ThreadRole.DATA, 0, "generator")
    assert cpu_without_data([system, generator]) is None
    assert cpu_without_data([system, generator, thread(ThreadRole.SYSTEM, 1)]) == 1
    assert cpu_without_data([]) is None
