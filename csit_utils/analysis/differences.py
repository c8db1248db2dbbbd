"""Differences between environments, plans or search profiles, most relevant first."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from resources.libraries.python.model.core_map import CoreMap
from resources.libraries.python.model.goal import SearchProfile
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.result import Environment

_ORDER = (
    r"\bcpu_model$",
    r"\bmicrocode$",
    r"\bkernel$",
    r"\bcommand_line$",
    r"\bsettings\..*vulnerabilities",
    r"\bsettings\..*(governor|smt|isolated|nohz)",
    r"\bsettings\.",
    r"\bversions\.",
    r"\bcores\.",
    r"\bgoals\.",
    r"\bvirtualization$",
    r"\bcpus_online$",
    r"\bmemory_bytes$",
    r"\bdistribution$",
    r"\bpython$",
    r"\bgit_",
    r"\bhostname$",
)
"""Paths in the order of likely relevance to a rate: CPUs, scheduling, software, and names of machines last. Other paths
come before the names."""
_COMMAND_LINE = "command_line"


@dataclass(frozen=True)
class Difference:
    """A value that differs."""

    path: str
    """Path of keys of the model, such as `settings./sys/devices/system/cpu/smt/control` or `nodes.TG.kernel`."""
    a: str | None
    """None: absent or unknown."""
    b: str | None


def environment_differences(a: Environment, b: Environment) -> tuple[Difference, ...]:
    """Return differences of two environments and their nodes; of command lines only the words that differ."""
    return _ordered(_flat(a.model_dump(mode="json")), _flat(b.model_dump(mode="json")))


def profile_differences(a: SearchProfile, b: SearchProfile) -> tuple[Difference, ...]:
    """Return differences of two search profiles; goals match by name."""
    return _ordered(_flat(_profile(a)), _flat(_profile(b)))


def plan_differences(a: Plan, b: Plan) -> tuple[Difference, ...]:
    """Return differences of two plans: CPUs by thread, data threads and medium by interface, vSwitch segments, NFs.

    Addresses and names follow from the cell and are ignored.
    """
    return _ordered(_plan(a), _plan(b))


def leaves(environment: Environment) -> dict[str, str]:
    """Return all values of an environment and its nodes by path."""
    return _flat(environment.model_dump(mode="json"))


def by_relevance(paths: Iterable[str]) -> list[str]:
    """Return each path once, most relevant first."""
    return sorted(set(paths), key=lambda path: (_rank(path), path))


def _ordered(a: Mapping[str, str], b: Mapping[str, str]) -> tuple[Difference, ...]:
    found = [Difference(path, a.get(path), b.get(path)) for path in {**a, **b} if a.get(path) != b.get(path)]
    return tuple(sorted((_shortened(each) for each in found), key=lambda each: (_rank(each.path), each.path)))


def _rank(path: str) -> int:
    names = len(_ORDER) - 2
    rank = next((index for index, pattern in enumerate(_ORDER) if re.search(pattern, path)), names)
    return 2 * rank + path.startswith("nodes.")


def _shortened(found: Difference) -> Difference:
    """Reduce two command lines to the words that the other one does not have."""
    if not found.path.endswith(_COMMAND_LINE) or found.a is None or found.b is None:
        return found
    a, b = found.a.split(), found.b.split()
    only_a, only_b = (
        " ".join(word for word in own if word not in other) for own, other in ((a, b), (b, a))
    )  # fmt: skip
    return Difference(found.path, only_a or None, only_b or None) if only_a or only_b else found


def _flat(value: Any, path: str = "") -> dict[str, str]:  # noqa: ANN401 - what JSON holds
    """Leaves by path, without those that are None."""
    if isinstance(value, Mapping):
        inside: Sequence[tuple[str, Any]] = [(str(key), each) for key, each in value.items()]
    elif isinstance(value, list):
        inside = [(str(index), each) for index, each in enumerate(value, 1)]
    else:
        return {} if value is None else {path: str(value)}
    return {
        name: leaf for key, each in inside for name, leaf in _flat(each, f"{path}.{key}" if path else key).items()
    }  # fmt: skip


def _profile(profile: SearchProfile) -> dict[str, Any]:
    values = profile.model_dump(mode="json")
    return {**values, "goals": {goal["name"]: goal for goal in values["goals"]}}


def _plan(plan: Plan) -> dict[str, str]:
    return dict(_plan_leaves(plan))


def _plan_leaves(plan: Plan) -> Iterator[tuple[str, str]]:
    yield from _core_leaves(plan.cores)
    for link in plan.links:
        for port in (link.a, link.b):
            yield f"links.{port.interface}.medium", str(link.medium)
            yield f"links.{port.interface}.data_thread", str(port.data_thread)
    for segment in plan.segments:
        copies = (f"copies to {port}" for port in segment.copies)
        yield f"segments.{segment.name}", ", ".join((*segment.members, *copies))
    for function in plan.all_nfs:
        yield f"functions.{function.name}", f"{function.kind} {function.size}"


def _core_leaves(cores: CoreMap) -> Iterator[tuple[str, str]]:
    yield "cores.numa_node", str(cores.numa_node)
    yield "cores.smt", str(cores.smt)
    yield "cores.oversubscribed", str(cores.oversubscribed)
    for thread in cores.threads:
        where = f"{thread.machine} " if thread.machine else ""
        yield f"cores.{where}{thread.owner}.{thread.role}{thread.index}", f"CPU {thread.cpu}"
