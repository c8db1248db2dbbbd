"""How to read rates, costs of density, and other figures of a test."""

from csit_utils.report.explanations import Explanation

EXPLANATIONS = (
    Explanation(
        "ndr",
        "NDR, non-drop rate",
        "The highest load at which not one packet is lost.",
        "Packets per second, all service instances and both directions together.",
        "A search by draft-ietf-bmwg-mlrsearch closes in on it from both sides with trials of a fixed length. The page "
        "shows the relevant lower bound: the highest load that met the goal. The upper bound is beside it.",
        "One lost packet in a trial moves it, so it is noisier than PDR; a large gap between the two says that the "
        "system loses a little at almost any load. Shorter trials give higher NDR: compare only equal goals.",
    ),
    Explanation(
        "pdr",
        "PDR, partial drop rate",
        "The highest load at which the share of lost packets stays within a stated ratio, here 0.5 % unless the goal "
        "says otherwise.",
        "Packets per second, all service instances and both directions together.",
        "In the same search as NDR, so that trials serve both goals. The loss ratio is computed over all instances and "
        "directions; the fairness index tells whether one instance bears it alone.",
        "Other projects use other ratios under the same name (0.1 % is common). A PDR without its ratio says nothing.",
    ),
    Explanation(
        "soak",
        "SOAK, soak rate",
        "The highest load at which the share of lost packets stays within a tiny ratio for minutes: one packet of ten "
        "million over five minutes, unless the goal says otherwise.",
        "Packets per second, all service instances and both directions together.",
        "A series of trials at one load decides it: lost packets of the whole series are counted against the ratio, so "
        "one bad trial may be made good by the others, and a rare stall counts. The page shows the highest load that "
        "held; the lowest that failed is beside it. `-v SEARCH:soak` asks for it.",
        "It is not NDR for longer: NDR allows no loss at all in a trial, but allows bad trials. Soak rates of unlike "
        "ratios or lengths do not compare, and a ratio below one packet of a series cannot be told from none.",
    ),
    Explanation(
        "plr",
        "PLR, critical load",
        "The load at which the mean share of lost packets is a tiny ratio, one of ten million unless the goal says "
        "otherwise: an estimate and its standard deviation.",
        "Packets per second, all service instances and both directions together.",
        "PLRsearch (draft-vpolak-bmwg-plrsearch): two functions of loss over load are fitted to all trials; the page "
        "shows the mean of both and how far it may be off by the trials and by their difference. `-v SEARCH:plr` asks "
        "for it.",
        "It is extrapolated, where the soak rate was measured, and has no bounds. The deviation does not tell how well "
        "the functions fit the system: a sharp edge lies a percent or two above the estimate.",
    ),
    Explanation(
        "mrr",
        "MRR, maximum receive rate",
        "What comes back at line rate, or at the most that the generator can send where that is less, whatever is lost "
        "on the way; as in FD.io CSIT.",
        "Packets per second, all service instances and both directions together.",
        "Several trials of a fixed length at that load; the page shows their mean and standard deviation.",
        "It is not a rate that a service can be run at. Overload may bring it far below NDR (receive livelock: threads "
        "that take packets in leave no CPU time to those that forward them, so that the more is offered the less comes "
        "back), or leave it above PDR. It depends on the load that was offered, which the page states. Where ORR is "
        "higher, the system forwards less under more load.",
    ),
    Explanation(
        "orr",
        "ORR, overload receive rate",
        "What comes back at a chosen overload: at most four times the best rate that was seen to come back.",
        "Packets per second, all service instances and both directions together.",
        "Short trials at the highest load, at half of it and so on find the best rate; then several trials of a fixed "
        "length at four times as much, the load where a search begins too. The page shows their mean and standard "
        "deviation. It is not measured where line rate, or the most that the generator can send, is less than that: "
        "then it would be MRR.",
        "It is not CSIT's MRR, and not a rate that a service can be run at. Earlier versions called it MRR.",
    ),
    Explanation(
        "bandwidth",
        "Bandwidth",
        "The packet rate expressed in bits.",
        "Bits per second, both directions together. L2 counts the frame with FCS; L1 adds 20 bytes per frame "
        "(preamble, start delimiter, gap between frames) and is what fills a physical line.",
        "Computed from the packet rate and the mean frame size, not measured.",
        "Both directions are added up: 20 Gbit/s here is one full 10 Gbit/s line each way.",
    ),
    Explanation(
        "per-core",
        "Throughput per core",
        "How much throughput each data core brings: the price of density.",
        "Packets per second per physical core.",
        "Throughput divided by cores, counted in three ways. Data cores: those that the cell asks for, of the vSwitch "
        "and of all NFs. Slides' cores: main threads too, an NF's as half a core, 2 + 1.5 S N for NF-1c. Real cores: "
        "all that the plan takes, system core included and halves rounded up. The generator's cores are in none.",
        "In an oversubscribed test the cores asked for are not there, so the quotient describes no real machine. With "
        "vSwitch and NFs on unlike sizes the mean hides which of them is the bottleneck.",
    ),
    Explanation(
        "efficiency",
        "Efficiency against 1x1",
        "What remains of the throughput of one service with one NF.",
        "Percent of the 1x1 cell of the same matrix.",
        "Of 1x1: throughput of the cell divided by that of 1x1, where 1x1 was measured and has both bounds. NF hops: "
        "that times the NFs each packet crosses. Per NF hop: NF hops divided by the number of NFs, the share of its "
        "lone rate at which each NF still works; 100 % is perfect scaling.",
        "Of 1x1 compares total throughput. Ten services at 80 % do not get 80 % each, they share it: 8 % per NF hop.",
    ),
    Explanation(
        "instances-that-fit",
        "How many instances fit",
        "The largest number of service instances, of those that were measured, that keeps a rate and a latency.",
        "Service instances.",
        "At the lower bound of NDR or PDR each instance's worse direction has to carry half of the rate; the worst "
        "instance counts. With a latency bound, some measured load of at least the rate times the instances has to "
        "have a p99 below it for every instance and direction; a lost probe counts as too late. All tests of a cell "
        "have to agree.",
        "Nothing is interpolated: 4 means that 4 was measured, and 5 perhaps not. Latency is measured up to 90 % of "
        "PDR, so a rate just below PDR has no latency and is no answer when a latency is asked for.",
    ),
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
