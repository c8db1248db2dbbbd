"""What a study of interference says in sentences, with the intervals of its numbers."""

from collections.abc import Iterator, Sequence

from resources.libraries.python.quantities import MINUS, rate
from resources.libraries.python.studies.interference.analysis.estimates import ALPHA
from resources.libraries.python.studies.interference.analysis.findings import lowest
from resources.libraries.python.studies.interference.analysis.tables import MatrixSlice, spots
from resources.libraries.python.studies.interference.model import (
    EstimatedValue,
    Interference,
    Normalized,
    PairsFindings,
    RankedMean,
    Resource,
    ResourceRelation,
    ResourceShare,
)


def headline(found: Interference) -> str:
    """Most sensitive and most aggressive network functions, and how much was measured where that is not all."""
    measured, asked = found.coverage
    lines = (
        findings_in_words(found.findings)
        if found.findings
        else ("no two network functions were measured beside each other",)
    )
    most = "; ".join(lines[1:] or lines)
    return most if measured == asked else f"{measured} of {asked} measurements were made; {most}"


def sentences(found: Interference) -> tuple[str, ...]:
    """The matrix, what the pairs say, and the placement advice."""
    return (*matrix_in_words(found), *advice_in_words(found))


def matrix_in_words(found: Interference) -> tuple[str, ...]:
    """A line for each network function, then what the pairs say, and a line for each point of a sweep."""
    points = spots(found) if len(found.spec.points()) > 1 else ()
    sweep = (f"{each.frame.name}, {rate(each.load_pps)} each: {_lost(each)}" for each in points)
    return (*_rows(found.matrix), *summary_in_words(found), *sweep)


def _lost(spot: MatrixSlice) -> str:
    if spot.findings is None:
        return "no pair was measured"
    first, *rest = findings_in_words(spot.findings)
    return "; ".join([first, *rest[:1]])


def summary_in_words(found: Interference) -> tuple[str, ...]:
    """What the pairs say: loss, most sensitive and aggressive, resources; then what could not be measured."""
    findings = found.findings
    lines = findings_in_words(findings) if findings else ()
    return (*lines, *resources_in_words(found), *found.notes)


def resources_in_words(found: Interference) -> Iterator[str]:
    """Shares of guaranteed resources, and what goes with the degradation."""
    findings = found.findings
    if findings:
        yield from _shares(findings.shares)
        if findings.none_p is not None and findings.none_p < ALPHA:
            yield from _relations(found.relations)


def findings_in_words(findings: PairsFindings) -> tuple[str, ...]:
    """What is lost in pairs; if anything is, then the most sensitive and the most aggressive network functions."""
    lost = f"pairs lose {percent(findings.degradation)} of their throughput on average"
    if (findings.degradation.high or 0.0) < 0:
        lost = f"pairs have {percent(findings.degradation.below(0.0))} more throughput than alone on average"
    if findings.none_p is not None and findings.none_p >= ALPHA:
        return (
            f"no interference was found: {lost}, and no pair differs from its baseline (p = {findings.none_p:.2f})",
        )
    if findings.none_p is None:
        lost = f"{lost} (one repetition: nothing is tested)"
    if len(findings.sensitivity) < 2:
        return (lost,)
    sensitive = _extreme("sensitive", "it loses {} beside another", findings.sensitivity)
    return (lost, sensitive, _extreme("aggressive", "others lose {} beside it", findings.aggressiveness))


def most_sensitive(findings: PairsFindings) -> tuple[str, ...]:
    """All that may be the most sensitive; none where nothing is tested, no interference was found, or all may be."""
    names = tuple(each.name for each in lowest(findings.sensitivity))
    found = findings.none_p is not None and findings.none_p < ALPHA
    return names if found and len(names) < len(findings.sensitivity) else ()


def _extreme(quality: str, clause: str, means: Sequence[RankedMean]) -> str:
    """Name the lowest mean, or all that may be the lowest."""
    names = lowest(means)
    if names[0].lost.value <= 0:
        return f"no NF is {quality}: none costs throughput on average"
    if len(names) == 1:
        tested = "" if names[0].ranks else ", not tested,"
        return f"most {quality}{tested} is {names[0].name}: {clause.format(percent(names[0].lost))}"
    amounts = _joined([f"{each.name} ({clause.format(percent(each.lost))})" for each in names])
    if len(names) == len(means):
        return f"no NF is distinguishable as the most {quality} one: {amounts}"
    return f"the most {quality} one is {' or '.join(each.name for each in names)}, not distinguishable: {amounts}"


def _shares(shares: Sequence[ResourceShare]) -> Iterator[str]:
    for resource in Resource:
        rows = [each for each in shares if each.resource is resource and each.target is None]
        cause = f"competition for {resource.words}" if resource is Resource.CPU else resource.words
        for row in rows:
            sets = "pairs" if row.together == 2 else f"{row.together} co-located NFs"
            if row.share is None:
                is_tested = row.degradation.low is not None
                yield f"the share of {resource.words} is not known for {sets}: " + (
                    f"their degradation of {percent(row.degradation)} may be 0" if is_tested else "one repetition"
                )
            elif row.share.value < 0:
                more = percent(row.share.below(0.0))
                yield f"{sets} lose more with {resource.words} guaranteed: that adds {more} to their degradation"
            elif row.share.value > 1:
                yield f"all of the degradation of {sets} comes from {cause}: with its guarantee they lose nothing"
            else:
                yield f"{percent(row.share)} of the degradation of {sets} comes from {cause}"


def _relations(relations: Sequence[ResourceRelation]) -> Iterator[str]:
    if not relations:
        return
    close = [each for each in relations if each.p < ALPHA]
    others = [each for each in relations if each.p >= ALPHA]
    named = _joined(
        [f"{each.quantity} (rank correlation {each.correlation:.2f}, p = {each.p:.2f})" for each in close or others]
    )
    if close:
        rest = f", not with that of {_joined([each.quantity for each in others])}" if others else ""
        yield f"degradation in pairs goes with the change of {named}{rest}"
    else:
        yield f"whether degradation in pairs goes with the change of {named} cannot be told"


def advice_in_words(found: Interference) -> tuple[str, ...]:
    """Return the placement advice."""
    return tuple(advice.sentence for advice in found.advice)


def cell_in_words(row: Normalized) -> str:
    """`0.615 (0.598 to 0.633)`."""
    if row.low is None or row.high is None:
        return f"{row.mean:.3f}"
    return f"{row.mean:.3f} ({row.low:.3f} to {row.high:.3f})"


def percent(interval: EstimatedValue) -> str:
    """`36.1 % (35.5 to 36.8 %)`."""
    text = f"{100 * interval.value:.1f} %"
    if interval.low is not None and interval.high is not None:
        text += f" ({100 * interval.low:.1f} to {100 * interval.high:.1f} %)"
    return text.replace("-", MINUS)


def _joined(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _rows(matrix: Sequence[Normalized]) -> Iterator[str]:
    for target in dict.fromkeys(row.target for row in matrix):
        beside = [f"{cell_in_words(row)} beside {' and '.join(row.against)}" for row in matrix if row.target == target]
        yield f"{target}: {', '.join(beside)}"
