"""How to read figures of chain studies."""

from csit_utils.report.explanations import Explanation

EXPLANATIONS = (
    Explanation(
        "cooks-distance",
        "Cook's distance",
        "How much a chain pulls the straight line that is laid through all chains: feature against volume.",
        "No unit. Above 4/n (n points) a point is influential; a chain whose mean over all features is above it is a "
        "suspect.",
        "For each feature of each VNF a line of feature against offered volume is fitted through the means of all "
        "chains with that VNF; the distance is that of Probius (Nam et al.). Extraordinary seconds are left out by the "
        "interquartile range.",
        "It finds what is unlike the rest, not what is bad: where half of the chains are slow, the fast ones stand "
        "out. With few chains or volumes almost anything is influential; read the reasons, and the VNF alone.",
    ),
    Explanation(
        "outlier",
        "Outliers among chains",
        "One quantity of a chain is far worse than expected from its VNFs alone and the other chains: throughput, "
        "loss, latency, or a VNF's throttled time, waiting for a CPU, drops, reads from storage.",
        "The deviation in robust standard deviations; its limit is Student's t at 1 % over all comparisons of a study.",
        "Expected are the throughput of the slowest VNF alone, the largest loss alone, and the sum of latencies alone "
        "less the path that each of them contains. Chains that a VNF limits are compared with each other, and the "
        "others with each other.",
        "A mean of distances over dozens of features dilutes a fault that changes one of them: this rule finds such "
        "faults. It needs the VNFs alone and five chains. On a machine with noise of heavy tails it flags more chains "
        "than on the simulated one.",
    ),
    Explanation(
        "ground-truth",
        "The VNF alone",
        "What a VNF does in a chain of its own is the ground truth of what it does in longer ones.",
        "As of the feature; outside of mean plus or minus three standard deviations it has changed.",
        "Chains of one VNF are always measured, under the same workloads.",
        "In a longer chain less traffic may reach a VNF, and its features change for that reason. On few cores, where "
        "VNFs share CPUs, everything changes: the results say so.",
    ),
    Explanation(
        "workflow-class",
        "Workflow classes",
        "What the threads of a VNF were doing, by pairs of events of the kernel: initialization, hard and soft "
        "switches, computation, memory access, interrupts, I/O, idleness, and what fits none.",
        "Share of the traced time; times a second.",
        "Of virtual machines by events of KVM (Table 2 of Probius), of network namespaces by scheduling, interrupt, "
        "NAPI and network events, by a mapping of our own that the documentation has.",
        "Portions of the two sources do not compare. A thread that polls computes all of the time.",
    ),
)
