"""Distinct environments, the runs that used them, and the differences between any two."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from csit_utils.analysis.comparisons.comparability import Difference, by_relevance, environment_differences, leaves
from csit_utils.analysis.runs import Run
from csit_utils.report.figures import Figure
from csit_utils.report.units import DASH, memory
from resources.libraries.python.model.result import Environment

IDENTITY = "environments"
_SCORES = str.maketrans("_", " ")
_NAMES = {
    "hostname": "host",
    "cpu_model": "CPU",
    "cpus_online": "CPUs online",
    "memory_bytes": "memory",
    "command_line": "kernel command line",
    "python": "Python",
    "git_revision": "revision of the suite",
    "git_dirty": "uncommitted changes",
}
"""Names of keys that are no words."""


@dataclass(frozen=True)
class EnvironmentView:
    """One environment."""

    name: str
    """`E1` for the newest run, and so on."""
    digest: str
    testbeds: tuple[str, ...]
    runs: tuple[Run, ...]
    """Newest first; empty if unknown."""
    tests: int
    environment: Environment

    @property
    def simulated(self) -> bool:
        """Whether it has simulated results only."""
        return bool(self.runs) and all(run.testbed.simulated for run in self.runs)

    @property
    def label(self) -> str:
        """Label in a list."""
        testbeds = ", ".join(self.testbeds)
        return f"{self.name} {testbeds} {self.last}".strip()

    @property
    def first(self) -> str:
        """Day of its oldest run."""
        return _day(self.runs[-1]) if self.runs else ""

    @property
    def last(self) -> str:
        """Day of its newest run."""
        return _day(self.runs[0]) if self.runs else ""


def _day(run: Run) -> str:
    return f"{run.started_at:%Y-%m-%d}" if run.started_at else ""


def environment_views(
    environments: Mapping[str, Environment], runs: Sequence[Run], tests: Mapping[str, int]
) -> list[EnvironmentView]:
    """Return all environments, that of the newest run first.

    `runs`: oldest first.
    `tests`: number of tests by digest.
    """
    used: dict[str, list[Run]] = {digest: [] for digest in environments}
    for run in reversed(runs):
        for digest in run.environments:
            if digest in used:
                used[digest].append(run)
    newest = {run.name: place for place, run in enumerate(reversed(runs))}
    order = sorted(used, key=lambda digest: newest[used[digest][0].name] if used[digest] else len(runs))
    return [
        EnvironmentView(
            f"E{number}",
            digest,
            tuple(dict.fromkeys(run.testbed.name for run in used[digest])),
            tuple(used[digest]),
            tests.get(digest, 0),
            environments[digest],
        )
        for number, digest in enumerate(order, 1)
    ]


def words(path: str) -> str:
    """Return the readable name of a path of keys."""
    for before, after in (("settings.", ""), ("versions.", "version of ")):
        at = path.find(before)
        if at == 0 or (at > 0 and path[at - 1] == "."):
            return f"{path[:at]}{after}{path[at + len(before) :]}".replace("nodes.", "")
    name = path.rpartition(".")[2]
    return f"{path.removesuffix(name)}{_NAMES.get(name, name)}".replace("nodes.", "").translate(_SCORES)


def first_pair(views: Sequence[EnvironmentView]) -> tuple[int, int] | None:
    """Return the newest environment and another, if possible of the same testbed; None if there is only one."""
    if len(views) < 2:
        return None
    same = (at for at, view in enumerate(views[1:], 1) if set(view.testbeds) & set(views[0].testbeds))
    return next(same, 1), 0


def differences(views: Sequence[EnvironmentView], pair: tuple[int, int]) -> list[tuple[str, Difference]]:
    """Return the differences between two environments by readable name, most relevant first."""
    found = environment_differences(views[pair[0]].environment, views[pair[1]].environment)
    return [(words(each.path), each) for each in found]


def side_by_side(views: Sequence[EnvironmentView]) -> list[tuple[str, tuple[str, ...], bool]]:
    """Return for each fact its readable name, its value in each environment, and whether the values differ."""
    every = [leaves(view.environment) for view in views]
    rows = ((words(path), [_shown(path, one.get(path)) for one in every]) for path in by_relevance(chain(*every)))
    return [(name, tuple(values), len(set(values)) > 1) for name, values in rows]


def _shown(path: str, text: str | None) -> str:
    return DASH if text is None else memory(int(text)) if path.endswith("memory_bytes") else text


def payload(views: Sequence[EnvironmentView]) -> Figure:
    """Return all environments for the page's script, every text once."""
    every = [leaves(view.environment) for view in views]
    paths = by_relevance(path for one in every for path in one)
    texts = list(dict.fromkeys(text for one in every for text in one.values()))
    number = {text: at for at, text in enumerate(texts)}
    rows = [[number[one[path]] if path in one else -1 for path in paths] for one in every]
    data = {
        "names": [words(path) for path in paths],
        "by_word": [at for at, path in enumerate(paths) if path.endswith("command_line")],
        "texts": texts,
        "rows": rows,
    }
    return Figure(IDENTITY, "Environments", simulated=False, selectors=(), variants=data)
