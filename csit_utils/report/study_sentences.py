"""Studies of chains and of interference, each in one sentence."""

from resources.libraries.python.studies.chains.model.record import ChainStudy
from resources.libraries.python.studies.interference.analysis.sensitivity import degradation, lowest
from resources.libraries.python.studies.interference.model.record import Interference


def chain_headline(study: ChainStudy) -> str:
    """How many chains were measured, and which one stands out most, why."""
    measured = len({run.chain for run in study.runs if run.failed is None})
    failed = len({run.chain for run in study.runs if run.failed is not None})
    begin = f"{measured} of {study.chains} chains were measured" if measured < study.chains else f"{measured} chains"
    failures = f", {failed} failed" if failed else ""
    if not study.suspects:
        return f"{begin}{failures}; none stands out"
    first = study.suspects[0]
    planted = " (a fault was planted in it)" if first.planted else ""
    reason = f": {first.reasons[0]}" if first.reasons else ""
    return f"{begin}{failures}; {len(study.suspects)} stand out, most of all {first.chain.name}{planted}{reason}"


def interference_headline(found: Interference) -> str:
    """Most sensitive and most aggressive network function, and how much was measured where that is not all."""
    measured, asked = found.coverage
    return _most(found) if measured == asked else f"{measured} of {asked} measurements were made; {_most(found)}"


def _most(found: Interference) -> str:
    sensitive, aggressive = lowest(found.sensitivity), lowest(found.aggressiveness)
    if sensitive is None or aggressive is None:
        return "no two network functions were measured beside each other"
    if found.sensitivity[sensitive] >= 1:
        return "no network function loses anything beside another, on average"
    loses = 100 * degradation(found.sensitivity[sensitive])
    suffers = f"most sensitive is {sensitive}, which loses {loses:.1f} % beside another"
    if found.aggressiveness[aggressive] >= 1:
        return suffers
    lose = 100 * degradation(found.aggressiveness[aggressive])
    return f"{suffers}; most aggressive is {aggressive}, beside which others lose {lose:.1f} %"
