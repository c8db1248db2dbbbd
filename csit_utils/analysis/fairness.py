"""Whether service instances get equal shares. Rates offered are equal for all instances by construction of a trial."""

from resources.libraries.python.model.evidence import Itemized
from resources.libraries.python.model.result import Result
from resources.libraries.python.search.itemize import itemize, itemize_goal


def itemized(result: Result) -> tuple[Itemized, ...]:
    """Throughput figures of a test per instance and direction: of the record, or of its trials in older records."""
    if result.itemized:
        return result.itemized
    goals = (itemize_goal(found, result.trials) for found in (result.ndr, result.pdr, result.soak) if found)
    mrr = itemize("MRR", (trial for trial in result.trials if trial.trial.purpose == "mrr"))
    return tuple(found for found in (*goals, mrr) if found is not None)
