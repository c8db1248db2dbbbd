"""Installed studies: every folder beside this module."""

from collections.abc import Iterable, Sequence
from functools import cache
from importlib import import_module

from csit_utils.dataset.items import Recorded
from csit_utils.dataset.measures import Explanation, Measure
from csit_utils.dataset.rows import MEASURES, MeasuredRow
from csit_utils.report.explanations import COSTS, SHARED
from csit_utils.report.study import RecordKind, Study, View
from csit_utils.studies import folders
from resources.libraries.python.errors import ConfigError, Unsupported
from resources.libraries.python.model.testbed.topology import World
from resources.libraries.python.planning.cost import StudyCost


def studies_by_name() -> dict[str, Study]:
    """Return all studies by the names of their folders."""
    return {name: import_module(f"csit_utils.studies.{name}.study").STUDY for name in folders()}


@cache
def studies() -> tuple[Study, ...]:
    """Return all studies in the order of the report."""
    return tuple(sorted(studies_by_name().values(), key=lambda study: study.order))


@cache
def record_kinds() -> dict[str, RecordKind]:
    """Return the declarations of record kinds by name, in the order of studies."""
    return {kind.kind: kind for study in studies() for kind in study.kinds}


def kind_of(item: Recorded) -> RecordKind:
    """Return the declaration of a record's kind.

    Raises:
        ConfigError: Its study is not installed.
    """
    try:
        return record_kinds()[item.record.kind]
    except KeyError as error:
        raise ConfigError(f"{item.source}: no study reads records of the kind '{item.record.kind}'") from error


@cache
def explanations() -> dict[str, Explanation]:
    """Return the explanations of metrics by name."""
    found = (text for own in explanations_by_heading().values() for text in own)
    return {name: text for text in found for name in (text.name, *text.also)}


def explanations_by_heading() -> dict[str, list[Explanation]]:
    """Return the explanations of metrics by the heading of their section, in the order of studies."""
    found: dict[str, list[Explanation]] = {}
    of_measures = [measure.explanation for measure in (*MEASURES, *measures()) if measure.explanation is not None]
    for sections in (*(study.explanations for study in studies()), {COSTS: of_measures}, SHARED):
        for heading, own in sections.items():
            found.setdefault(heading, []).extend(own)
    return found


_ONLY_IN = {"real", *World}


def cost_of(study: str, arguments: Sequence[str], world: World) -> StudyCost | None:
    """Return the cost of a test of a study; None where the study does not declare it, or its first keyword is another.

    `study`: its name, or that of a suite.
    `arguments`: of the test's first keyword: `Run Study`, or one that hands them on; variables count as their defaults.

    Raises:
        CsitError: The specification is wrong, or the test needs another world.
    """
    declared = studies_by_name().get(study)
    if declared is None or declared.preview is None or not arguments:
        return None
    name, *others = arguments
    keys = dict(each.split("=", 1) for each in others if "=" in each)
    only_in = keys.pop("only_in", next((each for each in others if each in _ONLY_IN), "any"))
    if not world.is_one_of(only_in):
        raise Unsupported(world.refusal(only_in))
    return declared.preview(name, keys)


def measures() -> tuple[Measure, ...]:
    """Return the quantities of studies that are compared and followed over time."""
    return tuple(dict.fromkeys(measure for kind in record_kinds().values() for measure in kind.measures))


def measured_rows(items: Iterable[Recorded]) -> list[MeasuredRow]:
    """Return records of studies as rows of tests, for comparisons and trends."""
    return [row for item in items for row in kind_of(item).rows_of(item)]


def views(items: Iterable[Recorded]) -> list[View]:
    """Return the newest record of each test, measured ones first, in the order of kinds."""
    by_key: dict[tuple[object, ...], list[Recorded]] = {}
    for item in sorted(items, key=lambda item: item.record.started_at):
        record = item.record
        key = (record.testbed, record.simulated, record.kind, record.test_id, kind_of(item).identity_of(record))
        by_key.setdefault(key, []).append(item)
    newest = [(own[-1], len(own) - 1) for own in by_key.values()]
    order = list(record_kinds())
    newest.sort(key=lambda pair: (pair[0].record.simulated, order.index(pair[0].record.kind)))
    return [kind_of(item).view(item, older) for item, older in newest]
