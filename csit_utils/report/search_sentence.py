"""The search of a test in one sentence: algorithm, prior, aborted trials."""

from csit_utils.report.units import seconds
from resources.libraries.python.model.goal import Prior, SearchRecord

_NAMES = {
    "mlrsearch": "MLRsearch",
    "ladder": "the ladder search",
    "rfc2544": "RFC 2544's binary search",
    "soak": "the soak search",
    "plr": "PLRsearch",
}


def searched(record: SearchRecord | None) -> str:
    """Return the sentence; empty without a search, or if the record has no data on it."""
    if record is None:
        return ""
    name = _NAMES[record.algorithm]
    ended = f"{record.aborted_trials} of them ended early" if record.aborted_trials else "none ended early"
    trials = f"{record.trials} trial{'s' if record.trials != 1 else ''}"
    return f"Searched by {name}, {_start(record.prior, refuted=record.prior_refuted)}: {trials}, {ended}, in " + (
        f"{seconds(record.elapsed_s)}."
    )


def _start(prior: Prior | None, *, refuted: bool) -> str:
    if prior is None:
        return "without an earlier result"
    against = ", which its trials refuted" if refuted else ""
    return f"from the result of {prior.test_id} of {prior.started_at}{against}"
