"""How to read figures of sizings."""

from csit_utils.report.explanations import Explanation

EXPLANATIONS = (
    Explanation(
        "indicator",
        "Performance indicator",
        "The load that a service handled, as reported by its load generator.",
        "That of the workload, such as calls/s; mean and standard deviation of the repetitions.",
        "The script of the workload offers a load for a fixed time and prints one number; this is repeated as "
        "specified.",
        "It is not a packet rate. A growing standard deviation is the first sign of overload: a service that sheds "
        "load "
        "oscillates before its mean falls.",
    ),
    Explanation(
        "size-capacity",
        "Capacity of a size",
        "The highest offered load that a deployment size carries.",
        "That of the workload, such as calls/s.",
        "Loads are offered from low to high; a load is carried where the mean indicator is at least the threshold's "
        "share of it (90 % unless specified). The size with the highest capacity is best; among equals, the one "
        "with the fewest vCPUs.",
        "Its resolution is one step of the range. “At least” means that the highest load of the range was carried. A "
        "directed search measures few sizes, so another one may be better.",
    ),
)
