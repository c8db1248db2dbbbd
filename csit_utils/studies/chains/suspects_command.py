"""`suspects`: chains that behave differently from the others, with the reasons."""

from collections.abc import Iterator
from typing import Annotated

import typer

from csit_utils.commands.results.inputs import INPUTS, opened, report_problems, without
from csit_utils.commands.tables import FORMAT, TableForm, TableLine, print_sentence, print_table
from csit_utils.dataset.items import Recorded
from resources.libraries.python.quantities import counted
from resources.libraries.python.studies.chains.analysis.sentences import (
    bound_in_words,
    cause_in_words,
    verdict_in_words,
)
from resources.libraries.python.studies.chains.model import ChainsRecord, ChainStudy, FeatureDeviation, Suspect

_HEADS = ("rank", "chain", "rule", "distance", "above threshold", "planted", "strongest reason")
_MAX_CHANGED = 5
_LEFT = ("chain", "rule", "planted", "strongest reason")


def suspects(
    inputs: INPUTS,
    why: Annotated[bool, typer.Option("--why", help="Also print all reasons and changed features.")] = False,
    most: Annotated[int, typer.Option(min=1, help="Largest number of suspects per study.")] = 20,
    form: FORMAT = TableForm.TABLE,
) -> None:
    """Rank chains that are worse than their VNFs, with reasons.

    Rules: `worse than predicted`: throughput, loss, latency, waiting, throttled time, reads from storage or CPU time
    per packet is worse than the VNFs alone predict; `mean distance`: the mean of Cook's distances over all features
    and workloads is above 4/n. `above threshold` counts features above 4/n. In a study of one volume, distances are
    from the baselines, as a note says. With --why the changed features of other chains are printed as well.

    \b
    Examples:
    ./csit suspects results/output.xml --why
    Names of suspects:
      ./csit suspects results --format json | jq -r '.chain'
    """  # noqa: D301 - \b keeps the lines of the examples apart
    found = opened(inputs).contents()
    studies = [
        (item, item.record.chain_study)
        for item in found.characterizations
        if isinstance(item.record, ChainsRecord) and item.record.chain_study
    ]
    if not studies:
        raise without(inputs, found.problems, "contains no chain study")
    print_table(_HEADS, [line for item, study in studies for line in _lines(item, study, most)], form, _LEFT)
    for item, study in studies:
        for sentence in _sentences(item, study):
            print_sentence(sentence, err=True)
        if why and form is TableForm.TABLE:
            for suspect in study.suspects[:most]:
                for line in _why(suspect):
                    print_sentence(line)
            for chain in study.changed[:most]:
                print_sentence(f"{chain.chain.name}, no suspect:")
                for line in map(_changed, chain.deviations[:_MAX_CHANGED]):
                    print_sentence(line)
    report_problems(found.problems)


def _lines(item: Recorded, study: ChainStudy, most: int) -> Iterator[TableLine]:
    for rank, suspect in enumerate(study.suspects[:most], 1):
        texts = (
            str(rank),
            suspect.chain.name,
            ", ".join(suspect.rules),
            f"{suspect.mean_distance:.3f}",
            str(len(suspect.distances)),
            suspect.planted or "",
            suspect.reasons[0] if suspect.reasons else "",
        )
        raw = {
            "study": study.spec.name,
            "simulated": item.record.simulated,
            "rank": rank,
            "chain": suspect.chain.name,
            "sizes": [member.size for member in suspect.chain.members],
            "rules": list(suspect.rules),
            "mean_distance": suspect.mean_distance,
            "threshold": suspect.threshold,
            "worse": [each.model_dump(mode="json", exclude={"chain"}) for each in suspect.worse],
            "above_threshold": len(suspect.distances),
            "planted": suspect.planted,
            "reasons": list(suspect.reasons),
        }
        yield TableLine(texts, raw)


def _sentences(item: Recorded, study: ChainStudy) -> Iterator[str]:
    failed = sum(run.failed is not None for run in study.runs)
    found = f"{counted(len(study.suspects), 'suspect')} among " if study.suspects else ""
    yield (
        f"{study.spec.name}{' (simulated)' if item.record.simulated else ''}: {found}{study.chains} chains"
        f"{f', {failed} runs failed' if failed else ''}{'' if study.suspects else f'; {verdict_in_words(study)}'}."
    )
    for cause in study.causes:
        yield f"{cause_in_words(cause)}."
    for bound in study.bounds:
        yield f"{bound_in_words(bound)}."
    yield from study.notes


def _why(suspect: Suspect) -> Iterator[str]:
    yield f"{suspect.chain.name}:"
    yield from (f"  {reason}" for reason in suspect.reasons)
    yield from map(_changed, suspect.deviations[:_MAX_CHANGED])


def _changed(row: FeatureDeviation) -> str:
    volume = f"{row.workload.volume_bps / 1e6:.4g} Mbit/s"
    return (
        f"  changed: {row.feature} of {row.owner} at {volume}: {row.here:.4g}, "
        f"baseline {row.alone:.4g} (standard deviation {row.alone_stdev:.2g})"
    )
