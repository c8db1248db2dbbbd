"""How to read figures of interference studies."""

from csit_utils.report.explanations import Explanation

EXPLANATIONS = (
    Explanation(
        "normalized-throughput",
        "Normalized throughput",
        "Throughput of a network function with co-located ones, relative to its throughput alone.",
        "1 is no interference; 0.6 means that 40 % are lost. With its 95 % confidence interval (Fieller).",
        "Each has its own traffic. Alone it runs in the same place, on the same CPUs, as beside others; the order of "
        "measurements is shuffled in each repetition.",
        "For a monitor it is the rate that its program inspected, not the forwarded rate. On few cores network "
        "functions, vSwitch and generator share CPUs; interference is then mostly competition for CPU time.",
    ),
    Explanation(
        "sensitivity",
        "Sensitivity",
        "Throughput that a network function loses beside another one, mean over all competitors, including a second "
        "instance of itself.",
        "Percent of its throughput alone.",
        "One minus the mean of its row of normalized throughputs (Zeng et al.).",
        "A mean over the competitors of this study; others may cause more or less loss.",
    ),
    Explanation(
        "aggressiveness",
        "Aggressiveness",
        "Throughput that others lose beside a network function, mean over all targets.",
        "Percent of their throughput alone.",
        "One minus the mean of its column of normalized throughputs.",
        "All were offered the same load. One that cannot accept its load may cause less loss than it would otherwise.",
    ),
    Explanation(
        "network-share",
        "Share of network I/O",
        "The part of the degradation that disappears when each has an equal share of the network I/O guaranteed.",
        "Percent of the mean degradation.",
        "All pairs once more with the ports of each limited to its part of the line by a token bucket, over the same "
        "throughput alone, without a limit; (guaranteed - without) / (1 - without), of the means.",
        "A traffic limit also limits the CPU time of competitors, so on shared CPUs this is not the share of the "
        "network alone.",
    ),
    Explanation(
        "placement-advice",
        "Advice on placement",
        "Network functions to put on the same server.",
        "Total capacity: the sum of normalized throughputs, at most the number of network functions.",
        "All placements are compared if there are few enough, otherwise a heuristic search finds a good one. Sets of "
        "three or more that were not measured are predicted: each member adds as much time to a packet as in a pair.",
        "It considers interference only: no memory, no cores, no traffic between network functions. Capacities within "
        "each other's confidence intervals are marked.",
    ),
)
