"""What was measured where and when, search goals, environments, and the differences between two."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from csit_utils.dataset.rows import PUBLISHED, TestRow
from csit_utils.report.environments import IDENTITY, differences, environment_views, first_pair, payload, side_by_side
from csit_utils.report.report_context import ReportContents
from csit_utils.report.study import Page
from csit_utils.report.units import DASH, percent, seconds
from resources.libraries.python.model.record import Record
from resources.libraries.python.model.request.goal import SearchProfile
from resources.libraries.python.model.result import Environment
from resources.libraries.python.studies.sweep.model import SweepRecord

if TYPE_CHECKING:
    from csit_utils.dataset.store.stored_contents import Stored

GOAL_COLUMNS = ("goal", "loss ratio", "exceed ratio", "bounds within", "first trials", "final trials", "evidence")


def facts(contents: "Stored") -> tuple[tuple[str, Sequence[str]], ...]:
    """Return what the results are of, by heading."""
    recorded = [row for row in contents.tests if row.recorded and row.world != PUBLISHED]
    others = contents.characterizations
    environments = contents.environments.values()
    services: dict[str, list[str]] = {}
    for row in recorded:
        services.setdefault(row.test_type or "one load", []).append(row.service_type or "without NFs")
    types = [f"{kind}: {', '.join(_unique(found))}" for kind, found in services.items()]
    types += _unique(item.record.kind.replace("_", " ") for item in others)
    sweeps = (item.record.sweep for item in others if isinstance(item.record, SweepRecord))
    frames = _unique(
        (*(row.frame for row in recorded if row.frame), *(sweep.spec.frame.name for sweep in sweeps if sweep))
    )
    timed: list[TestRow | Record] = [*recorded, *(item.record for item in others)]
    begun = _span([row.started_at for row in timed if row.started_at])
    ended = _span([row.finished_at for row in timed if row.finished_at])
    when = f"{begun[0]:%Y-%m-%d %H:%M} to {ended[1]:%Y-%m-%d %H:%M} UTC" if begun and ended else DASH
    return (
        ("What", ("; ".join(types) or DASH, f"frames {', '.join(frames)}" if frames else "")),
        ("Where", _unique((*map(_where, recorded), *_where_records(item.record for item in others)))),
        ("Host", _unique(line for environment in environments for line in _hosts(environment))),
        ("When", (when,)),
        ("Code", _unique(map(_code, environments))),
    )


def _where(row: TestRow) -> str:
    return f"testbed {row.testbed} ({'simulated' if row.simulated else row.world}): {row.drivers}"


def _where_records(records: Iterable[Record]) -> Iterator[str]:
    """One line per testbed, with the components used by any of its records."""
    used: dict[tuple[str, str], set[str]] = {}
    for record in records:
        drivers = (f"{role} {name}" for role, name in record.drivers.items())
        kind = "simulated" if record.simulated else str(record.world)
        used.setdefault((record.testbed, kind), set()).update(drivers)
    return (f"testbed {testbed} ({kind}): {', '.join(sorted(own))}" for (testbed, kind), own in used.items())


def _hosts(environment: Environment) -> Iterator[str]:
    """The machine with the DUT, and the other nodes of a lab."""
    machines = (("", environment), *((f"{name}: ", node) for name, node in environment.nodes.items()))
    for name, machine in machines:
        yield f"{name}{machine.cpu_model}, {machine.cpus_online} CPUs, Linux {machine.kernel}"


def _unique(lines: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(lines))


def _code(environment: Environment) -> str:
    version = f"{environment.program_version}, " if environment.program_version else ""
    if environment.git_revision is None:
        return f"{version}revision unknown"
    dirty = ", with uncommitted changes" if environment.git_dirty else ""
    return f"{version}git {environment.git_revision[:12]}{dirty}"


def _span(stamps: Sequence[str]) -> tuple[datetime, datetime] | None:
    """Earliest and latest of ISO 8601 times; invalid ones are ignored."""
    times = []
    for stamp in stamps:
        try:
            times.append(datetime.fromisoformat(stamp).replace(tzinfo=None))
        except ValueError:
            continue
    return (min(times), max(times)) if times else None


_Profile = tuple[str, Sequence[tuple[str, ...]], Sequence[str]]


def profiles(contents: "Stored") -> tuple[_Profile, ...]:
    """Return all distinct search profiles: name, a row per goal as `GOAL_COLUMNS`, and notes."""
    one_of_each = {(row.profile, row.goals): row.anchor for row in contents.tests if row.recorded and row.profile}
    found = (contents.record(anchor).asked.profile for anchor in one_of_each.values())
    return tuple(map(_profile, dict.fromkeys(found)))


def _profile(profile: SearchProfile) -> _Profile:
    rows = tuple(
        (
            goal.name,
            percent(goal.loss_ratio),
            percent(goal.exceed_ratio),
            percent(goal.relative_width),
            seconds(goal.initial_trial_duration_s),
            seconds(goal.final_trial_duration_s),
            f"{seconds(goal.duration_sum_s)} of final trials",
        )
        for goal in profile.goals
    )
    notes = (
        f"A search ends after {seconds(profile.duration_max_s)} with the bounds it has.",
        f"MRR and ORR: {profile.mrr_trials} trials of {seconds(profile.mrr_duration_s)}.",
        f"Latency: {seconds(profile.latency_duration_s)} per load, "
        f"{profile.latency_probe_pps:g} probe frames per second, instance and direction.",
    )
    return profile.name, rows, notes


_SIDE_BY_SIDE = 6
"""Largest number of environments side by side."""
_SOURCES = 5


def _build(shown: ReportContents) -> Mapping[str, object]:
    known = shown.contents.environments
    others = shown.contents.characterizations
    counted = Counter(row.environment for row in shown.rows if row.environment)
    counted.update(item.record.environment.digest for item in others)
    views = environment_views(known, shown.history.runs, counted)
    pair = first_pair(views)
    sources = list(dict.fromkeys((*(row.source for row in shown.rows), *(item.source for item in others))))
    return {
        "views": views,
        "pair": pair,
        "differences": differences(views, pair) if pair else [],
        "identity": IDENTITY,
        "shown": views[:_SIDE_BY_SIDE],
        "facts": side_by_side(views[:_SIDE_BY_SIDE]),
        "profiles": profiles(shown.contents),
        "goal_columns": GOAL_COLUMNS,
        "sources": sources[:_SOURCES],
        "more_sources": max(0, len(sources) - _SOURCES),
        "figures": [payload(views)] if pair else [],
    }


PAGE = Page("environment", "Environment", _build)
