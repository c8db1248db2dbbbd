"""How to read figures of chain studies."""

from csit_utils.report.explanations import Explanation

EXPLANATIONS = (
    Explanation(
        "cooks-distance",
        "Cook's distance",
        "Influence of a chain on the regression line through all chains: feature against volume.",
        "No unit. Above 4/n (n points) a point is influential; a chain whose mean over all features is above it is a "
        "suspect.",
        "For each feature of each VNF a line of feature against offered volume is fitted through the means of all "
        "chains with that VNF; the distance is that of Probius (Nam et al.). Extraordinary seconds are left out by the "
        "interquartile range.",
        "It finds differences, not faults: if half of the chains are slow, the fast ones are "
        "suspects too. With few chains or volumes almost any point is influential; see the reasons and the baselines.",
    ),
    Explanation(
        "outlier",
        "Outliers among chains",
        "One quantity of a chain is far worse than expected from baselines and other chains: throughput, "
        "loss, latency, or a VNF's throttled time, waiting for a CPU, drops, reads from storage.",
        "The deviation in robust standard deviations; its limit is Student's t at 1 % over all comparisons of a study.",
        "Expected are the baseline throughput of the slowest VNF, the largest baseline loss, the sum of latencies "
        "less the path that each of them contains. Chains that a VNF limits are compared with each other, and the "
        "others with each other.",
        "A mean of distances over dozens of features dilutes a fault that changes one of them: this rule finds such "
        "faults. It needs the VNFs alone and five chains. On a machine with noise of heavy tails it flags more chains "
        "than on the simulated one.",
    ),
    Explanation(
        "ground-truth",
        "Baseline of a VNF",
        "The behaviour of a VNF in a chain of its own, with which longer chains are compared.",
        "Unit of the feature; a value outside of the mean plus or minus three standard deviations has changed.",
        "Chains of one VNF are always measured, under the same workloads.",
        "In a longer chain less traffic may reach a VNF, which changes its features. On few cores, where "
        "VNFs share CPUs, all features change; results are marked accordingly.",
    ),
    Explanation(
        "workflow-class",
        "Workflow classes",
        "Activity of the threads of a VNF by pairs of kernel events: initialization, hard and soft "
        "switches, computation, memory access, interrupts, I/O, idleness, and other.",
        "Share of the traced time; times a second.",
        "Of virtual machines by events of KVM (Table 2 of Probius), of network namespaces by scheduling, interrupt, "
        "NAPI and network events, by a mapping that docs/methodology.md defines.",
        "Shares of the two sources are not comparable. A polling thread always computes.",
    ),
)
