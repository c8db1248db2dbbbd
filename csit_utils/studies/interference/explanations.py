"""How to read figures of interference studies."""

from csit_utils.report.explanations import Explanation

EXPLANATIONS = (
    Explanation(
        "normalized-throughput",
        "Normalized throughput",
        "Throughput of a network function beside others over its throughput alone.",
        "1 is no interference; 0.6 means that 40 % are lost. With its 95 % confidence interval (Fieller).",
        "Each has its own traffic. Alone it runs in the same place, on the same CPUs, as beside others; the order of "
        "measurements is shuffled in each repetition.",
        "For a monitor it is what its program looked at, not what was forwarded. On few cores network functions, "
        "vSwitch and generator share CPUs: then most of the interference is for CPU time.",
    ),
    Explanation(
        "sensitivity",
        "Sensitivity",
        "What a network function loses beside another one, mean over all competitors, its own like included.",
        "Percent of its throughput alone.",
        "One minus the mean of its row of normalized throughputs (Zeng et al.).",
        "A mean over the competitors of this study: others may do it more or less harm.",
    ),
    Explanation(
        "aggressiveness",
        "Aggressiveness",
        "What others lose beside a network function, mean over all targets.",
        "Percent of their throughput alone.",
        "One minus the mean of its column of normalized throughputs.",
        "All were offered the same load. One that cannot take its load in may do others less harm than it could.",
    ),
    Explanation(
        "network-share",
        "Share of network I/O",
        "How much of the degradation goes away when each has an equal share of the network I/O guaranteed.",
        "Percent of the mean degradation.",
        "All pairs once more with the ports of each limited to its part of the line by a token bucket, over the same "
        "throughput alone, without a limit; (guaranteed - as it is) / (1 - as it is), of the means.",
        "A limit of traffic also limits what competitors compute: on shared CPUs it is no pure share of the network.",
    ),
    Explanation(
        "placement-advice",
        "Advice on placement",
        "Which network functions to put on the same server.",
        "Total capacity: the sum of normalized throughputs, at most the number of network functions.",
        "All placements are compared where there are few enough, otherwise a good one is looked for. Three and more on "
        "a server that were not measured together are predicted: each adds as much time to a packet as in a pair.",
        "It knows interference only: no memory, no cores, no traffic between network functions. Close capacities are "
        "said to be within the confidence intervals.",
    ),
)
