"""Differences between environments, most relevant first."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from resources.libraries.python.model.result import Environment

_ORDER = (
    r"\bcpu_model$",
    r"\bmicrocode$",
    r"\bkernel$",
    r"\bcommand_line$",
    r"\bsettings\.mitigation",
    r"\bsettings\.(governors|turbo|idle|PCIe|memory modules)",
    r"\bsettings\..*(smt|isolated|nohz)",
    r"\bsettings\.",
    r"\bversions\.",
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
    elif isinstance(value, bool):
        return {path: "yes" if value else "no"}
    else:
        return {} if value is None else {path: str(value)}
    return {
        name: leaf for key, each in inside for name, leaf in _flat(each, f"{path}.{key}" if path else key).items()
    }  # fmt: skip
