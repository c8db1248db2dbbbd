"""Differences between environments, most relevant first."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from resources.libraries.python.model.result import Environment

_EFFECTS = (
    (r"option .* of", "what vSwitch or NFs do with each packet"),
    (r"PCIe link|speed", "caps the packet rate of the NIC"),
    (r"governors|turbo", "scales clock frequency, and with it every rate"),
    (r"\bcpu_model$|memory modules|cpus_online$", "clocks per packet"),
    (r"mitigation of|microcode$|command_line$", "clocks per packet, most in the kernel"),
    (r"\bkernel$|versions\.|driver of|NIC of|firmware of", "other code on the path"),
    (r"isolated|nohz|rt_runtime|smt|BIOS", "interruptions of data threads: rare loss"),
    (r"ring sizes|coalescing|netdev_budget", "loss of bursts, and latency"),
    (r"pause frames|FEC", "loss moves to the sender, or becomes latency"),
    (r"idle states|dma_latency", "latency at low load"),
    (r"NUMA balancing|huge pages", "page faults: rare loss"),
    (r"\bsettings\.|\bvirtualization$|\bmemory_bytes$", ""),
    (r"\bdistribution$|\bpython$|\bgit_", ""),
    (r"\bhostname$", ""),
)
"""Paths with what they are known to change, from the largest effect on a rate to none; names of machines are last, and
other paths come before them."""
_COMMAND_LINE = "command_line"


@dataclass(frozen=True)
class Difference:
    """A value that differs."""

    path: str
    """Path of keys of the model, such as `settings./sys/devices/system/cpu/smt/control` or `nodes.TG.kernel`."""
    a: str | None
    """None: absent or unknown."""
    b: str | None

    @property
    def effect(self) -> str:
        """What it is known to change; empty where nothing is."""
        found = _index(self.path)
        return _EFFECTS[found][1] if found is not None else ""


def environment_differences(a: Environment, b: Environment) -> tuple[Difference, ...]:
    """Return differences of two environments and their nodes; of command lines only the words that differ."""
    one, other = leaves(a), leaves(b)
    paths = by_relevance(path for path in (*one, *other) if one.get(path) != other.get(path))
    return tuple(_shortened(Difference(path, one.get(path), other.get(path))) for path in paths)


def leaves(environment: Environment) -> dict[str, str]:
    """Return all values of an environment and its nodes by path."""
    return _flat(environment.model_dump(mode="json"))


def by_relevance(paths: Iterable[str]) -> list[str]:
    """Return each path once, most relevant first."""
    return sorted(set(paths), key=lambda path: (_rank(path), path))


def _rank(path: str) -> float:
    found = _index(path)
    return (len(_EFFECTS) - 1.5 if found is None else found) + (0.1 if path.startswith("nodes.") else 0.0)


def _index(path: str) -> int | None:
    return next((index for index, (pattern, _) in enumerate(_EFFECTS) if re.search(pattern, path)), None)


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
