"""The chain with which the call stacks of a suspect are compared.

It is a chain that is no suspect, as near to the suspect as there is one. In another order the same functions of the
same VNFs do the same work, so that what grew is the chain's. Otherwise it is the longest part of the suspect, down to
the VNF alone with which the analysis compares features; of parts as long, one with the VNF that stands out.
"""

from collections.abc import Collection, Sequence

from resources.libraries.python.studies.chains.model.record import ChainRun, Reference
from resources.libraries.python.studies.chains.model.spec import Chain, Member, Workload

ANOTHER_ORDER = "the same VNFs in another order"


def reference(
    suspect: Chain, at: Workload, owner: str | None, runs: Sequence[ChainRun], suspects: Collection[Chain]
) -> Reference | None:
    """Return the chain to compare a suspect with; None where none was measured that is no suspect.

    Args:
        suspect: The chain.
        at: Workload under which it stands out most.
        owner: Its VNF that stands out; None where that is the chain from end to end.
        runs: All that were measured.
        suspects: All suspects.
    """
    well = [
        run.chain
        for run in sorted(runs, key=lambda run: -(run.throughput_bps or 0.0))
        if run.workload == at and run.failed is None and run.planted is None and run.chain not in suspects
    ]
    here = sorted(suspect.members, key=_by_name)
    for chain in well:
        if sorted(chain.members, key=_by_name) == here:
            return Reference(chain=chain, workload=at, relation=ANOTHER_ORDER)
    parts = [chain for chain in well if _is_part(chain.members, suspect.members)]
    parts.sort(key=lambda chain: (-len(chain.members), owner not in chain.order))
    if not parts:
        return None
    missing = [member.name for member in suspect.members if member not in parts[0].members]
    return Reference(chain=parts[0], workload=at, relation=f"without {', '.join(missing)}")


def _by_name(member: Member) -> str:
    return member.name


def _is_part(part: Sequence[Member], whole: Sequence[Member]) -> bool:
    """Whether all of its VNFs are in the whole, in that order."""
    left = iter(whole)
    return len(part) < len(whole) and all(member in left for member in part)
