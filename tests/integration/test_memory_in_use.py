"""Memory of a real process in a namespace while it allocates, with and without a control group."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from resources.libraries.python.drivers.host.cgroups import cgroups
from resources.libraries.python.drivers.host.cgroups.cgroup_exec import entering
from resources.libraries.python.drivers.host.cgroups.cgroups import ControlGroup
from resources.libraries.python.drivers.host.links import namespaces
from resources.libraries.python.drivers.host.links.namespace_syscalls import aside
from resources.libraries.python.drivers.probes.sampler.features import group_of
from resources.libraries.python.drivers.probes.sampler.host import HostSampler, memory_of
from resources.libraries.python.drivers.probes.sampler.tasks import tasks_of
from resources.libraries.python.errors import Unsupported

pytestmark = [pytest.mark.parallel, pytest.mark.root]

OWNER = "nf-of-memory-test"
"""An NF that no cell has."""
HOLDER = """
import sys
held = []
for line in sys.stdin:
    held.append(b"x" * (int(line) << 20))
    print(len(held), flush=True)
"""
MIB = 1 << 20


@contextmanager
def process_in_a_namespace(group: ControlGroup | None) -> Iterator[subprocess.Popen[str]]:
    """Run a process that allocates memory on request, in MiB."""
    name = namespaces.name_of(OWNER)
    (made,) = aside(lambda: list(namespaces.create([(name, {})])))
    argv = entering(() if group is None else group.doors, [sys.executable, "-I", "-S", "-c", HOLDER])
    try:
        process = namespaces.run_inside(
            name, lambda: subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        )
        with process:
            try:
                yield process
            finally:
                process.kill()
    finally:
        made.close()
        namespaces.remove(name)


def allocate(process: subprocess.Popen[str], mib: int) -> None:
    """Let it take memory; return once it has written to all of it."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(f"{mib}\n")
    process.stdin.flush()
    assert process.stdout.readline()


@pytest.fixture(params=["namespace alone", "control group"])
def group(request: pytest.FixtureRequest) -> Iterator[ControlGroup | None]:
    if request.param == "namespace alone":
        yield None
        return
    try:
        made = ControlGroup(cgroups.discover(), f"csit-{OWNER}")
        made.make()
    except Unsupported as error:
        pytest.skip(str(error))
    yield made
    made.remove()


def test_samples_follow_what_a_process_allocates(group: ControlGroup | None) -> None:
    with process_in_a_namespace(group) as process:
        allocate(process, 1)
        tasks = tasks_of([OWNER], {})[OWNER]
        assert tasks.processes == (process.pid,)
        found = None if group is None else group_of(tasks, cgroups.discover())
        assert (found is None) == (group is None)

        def memory() -> dict[str, int]:
            used = memory_of(tasks, found)
            return {} if used is None else {OWNER: used}

        sampler = HostSampler((), dict, memory=memory)
        before = sampler.read()
        for step in (32, 64):
            allocate(process, step)
            after = sampler.read()
            grown = after.memory_bytes[OWNER] - before.memory_bytes[OWNER]
            assert 0.9 * step * MIB < grown < 1.25 * step * MIB + 4 * MIB, (step, grown)
            assert after.available_bytes is not None and after.available_bytes > 0
            before = after
