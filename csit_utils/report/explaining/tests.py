"""How to read what a test tells beside its rate."""

from csit_utils.report.explaining.explanation import Explanation

TESTS = (
    Explanation(
        "latency",
        "Latency",
        "The time one packet takes from the generator through the service and back to the generator, one way.",
        "Nanoseconds in files, shown as µs or ms; by instance, direction and load.",
        "Probe frames at a low rate on top of the load; every probe is a sample of an HDR histogram. Loads are percent "
        "of PDR; PDR0 sends probes only. SOAK90 and so on are percent of the soak rate.",
        "With 1,000 samples there is no 99.99th percentile: curves end where samples end. Lost probes have no latency, "
        "so a curve beside loss looks better than it is. Generator and time stamps are inside the figure.",
    ),
    Explanation(
        "latency-map",
        "Latency heat map",
        "A percentile of latency in every cell of the matrix: of the worst instance in the worse direction.",
        "Time one way; the colour scale is logarithmic, one for each percentile.",
        "Of the newest test of the cell. The percentile is that of all probes that were sent: where more than 1 % of "
        "them are lost, p99 may be one of the lost ones and is unknown. p99 needs 100 samples and p99.9 needs 1,000; "
        "with fewer the largest one would be shown for it. Such cells say so.",
        "PDR50 is half of the cell's own PDR, so a dense cell is measured at a lower rate than a sparse one: hover for "
        "the rate. The worst of ten instances is higher than the worst of one even where all are equal, because more "
        "are looked at.",
    ),
    Explanation(
        "core-map",
        "Core map",
        "Which thread runs on which logical CPU, planned and found.",
        "One box per logical CPU; siblings of a physical core side by side; a part for each machine.",
        "The planner places threads; after deployment and after measuring they are looked up, and the table tells "
        "where each was allowed to run.",
        "Shared is a CPU on which a data thread has to wait for another busy thread. Siblings of a core share it too, "
        "though they are two boxes: two data threads on one core get less than two cores. CPU numbers of two machines "
        "have nothing to do with each other.",
    ),
    Explanation(
        "fairness",
        "Fairness (Jain's index)",
        "Whether all service instances get equal shares of what comes back.",
        "1 when all are equal, 1/n when one instance of n has everything.",
        "(sum x)² / (n · sum x²) over the rates forwarded per instance, both directions, in the good trials of the "
        "NDR and PDR lower bounds, and in overload: in the trial beyond the bounds that locates losses, or in those "
        "of MRR and ORR. All instances are offered the same.",
        "At NDR and PDR little is lost, so it is close to 1 even if one instance bears all the loss: look at the worst "
        "instance's loss beside it, and at the index in overload.",
    ),
    Explanation(
        "verdict",
        "Verdict",
        "Whether a number may be trusted, and what limits it.",
        "One or more words, most important first, each with evidence in numbers.",
        "vswitch-bound, nf-bound: beyond its limit the system loses packets there. generator-bound: the system can do "
        "more than was offered. unstable: two bands, NDR far under PDR, or more forwarded beyond the bound than at it. "
        "below-range: no load was low enough. incomplete: time ran out before the bounds were close. oversubscribed: "
        "data threads shared cores. quarantined: the cell broke the system under test twice and was given up. "
        "no-traffic, affinity-lost, emulated, failed: see the evidence. measured: none of them.",
        "Each number has its own: PDR may be generator-bound where NDR is vswitch-bound. The place of the loss and the "
        "time of the threads may contradict each other, and then both are said. `generator-bound` numbers are lower "
        "limits, shown with ≥.",
    ),
    Explanation(
        "loss-by-hop",
        "Loss by hop",
        "Between which two hops of its path the packets of each instance and direction were lost, and whose loss it "
        "is.",
        "Packets, in trials that offer more than the system can take.",
        "Counters of all interfaces are read before and after. Packets that met a full receive queue are charged to "
        "the receiver, though on virtual links the sender counts them as dropped. What an owner received and did not "
        "send, it dropped itself. CPU time is that of the data threads in the same trials.",
        "It tells where packets end in overload. On data threads that share a CPU, the one whose queue overflows "
        "need not be the slow one. Threads that poll run all the time: their CPU time says nothing.",
    ),
)
