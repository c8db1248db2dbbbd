"""What to try where tests did not pass. The first entry that fits counts."""

import re

from csit_utils.analysis.causes import Cause, CauseKind

_BY_WORDS = (
    (
        r"terminated by signal|run (was )?(stopped|interrupted)|in a row broke",
        "The run was cut short. Mend what stopped it, then go on where it stopped: ./csit robot --resume FOLDER.",
    ),
    (
        r"space (left|for results)|cannot be written",
        "Make space, or choose another folder with -d, then go on: ./csit robot --resume FOLDER.",
    ),
    (
        r"did not arrive|no traffic|no packet|never arrived",
        "The evidence names the last hop that saw packets and the first that did not: look at the part between them. "
        "Its table of losses by hop is on the page of the test.",
    ),
    (
        r"host key|ssh|connection|unreachable|cannot be reached|agent",
        "Look whether the node can be reached: ./csit doctor TOPOLOGY. What a node has to have is in "
        "docs/how-to/reach-nodes.md.",
    ),
    (
        r"not ready|within \S+ s|did not answer|last (seen|said)|nothing from",
        "A part was too slow or hung. Run the test alone with the command on its page; ./csit doctor TOPOLOGY tells "
        "what the machine lacks. If it is only slow, raise the deadline in the topology.",
    ),
)
_BY_KIND = {
    CauseKind.QUARANTINED: "The cell broke the system under test in every attempt, and its other tests were left out "
    "for that. Read the attempts, then run the cell alone with the command on the page of its test.",
    CauseKind.DOES_NOT_FIT: "This is an answer, not a fault: the cell does not fit on the testbed. ./csit plan "
    "TOPOLOGY shows what does; smaller NFs or fewer services may.",
    CauseKind.SKIPPED: "The testbed lacks something that the test needs. ./csit doctor TOPOLOGY says what, and how to "
    "mend it.",
    CauseKind.FAILED: "Open the test: its evidence, trials and core map tell how far it came. Run it alone with the "
    "command there.",
}


def advice(cause: Cause) -> str:
    """What to try."""
    if cause.kind is not CauseKind.DOES_NOT_FIT:
        text = f"{cause.sentence} {cause.tests[0].message}"
        for words, said in _BY_WORDS:
            if re.search(words, text, re.IGNORECASE):
                return said
    return _BY_KIND[cause.kind]
