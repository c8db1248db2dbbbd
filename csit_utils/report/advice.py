"""Advice on failed tests by pattern of their messages. The first match counts."""

import re

from csit_utils.analysis.causes import Cause, CauseKind

_BY_WORDS = (
    (
        r"terminated by signal|run (was )?(stopped|interrupted)|in a row broke",
        "The run was interrupted. Fix the reason, then resume the run: ./csit robot --resume FOLDER.",
    ),
    (
        r"space (left|for results)|cannot be written",
        "Free disk space, or choose another folder by -d, then resume: ./csit robot --resume FOLDER.",
    ),
    (
        r"did not arrive|no traffic|no packet|never arrived",
        "The evidence names the last hop that saw packets and the first that did not: check the path between them. "
        "The page of the test has a table of losses by hop.",
    ),
    (
        r"host key|ssh|connection|unreachable|cannot be reached|agent",
        "Check that the node is reachable: ./csit doctor TOPOLOGY. For requirements of nodes see "
        "docs/how-to/reach-nodes.md.",
    ),
    (
        r"not ready|within \S+ s|did not answer|last (seen|said)|nothing from",
        "A component was slow or hung. Run the test by the command on its page; ./csit doctor TOPOLOGY reports "
        "missing requirements. If it is only slow, raise the deadline in the topology.",
    ),
)
_BY_KIND = {
    CauseKind.QUARANTINED: "The cell broke the system under test in every attempt, so its other tests were skipped. "
    "See the attempts, then run the cell by the command on the page of its test.",
    CauseKind.DOES_NOT_FIT: "This is a result, not a fault: the cell does not fit on the testbed. ./csit plan "
    "TOPOLOGY shows which cells fit; try smaller NFs or fewer services.",
    CauseKind.SKIPPED: "The testbed does not meet a requirement of the test. ./csit doctor TOPOLOGY shows it and how "
    "to fix it.",
    CauseKind.FAILED: "See evidence, trials and core map on the page of the test, and run it by the command there.",
}


def advice(cause: Cause) -> str:
    """Return the advice on a cause."""
    if cause.kind is not CauseKind.DOES_NOT_FIT:
        text = f"{cause.sentence} {cause.tests[0].message}"
        for words, said in _BY_WORDS:
            if re.search(words, text, re.IGNORECASE):
                return said
    return _BY_KIND[cause.kind]
