"""How to read rates, and what density costs of them."""

from csit_utils.report.explaining.explanation import Explanation

RATES = (
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
)
