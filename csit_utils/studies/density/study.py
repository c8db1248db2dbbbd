"""Density tests in reports: their pages, and explanations of their metrics."""

from collections.abc import Mapping, Sequence
from itertools import product

from csit_utils.analysis.comparisons.comparability import likeness
from csit_utils.analysis.grouping import Series
from csit_utils.dataset.measures import Explanation
from csit_utils.dataset.rows import THROUGHPUTS
from csit_utils.report.cell_maps import shades
from csit_utils.report.explanations import COSTS
from csit_utils.report.report_context import ReportContents, runs_shown
from csit_utils.report.study import Page, Study
from csit_utils.studies.density.blocks import kind_of
from csit_utils.studies.density.pages import energy, fairness, latency, losses, results

_THROUGHPUT = (
    Explanation(
        "ndr",
        "NDR, non-drop rate",
        "The highest load without any packet loss.",
        "Packets per second, all service instances and both directions together.",
        "A search by draft-ietf-bmwg-mlrsearch narrows it from both sides by trials of a fixed length. The page "
        "shows the relevant lower bound: the highest load that met the goal. The upper bound is beside it.",
        "A single lost packet changes it, so it is noisier than PDR; a large gap between the two means that the "
        "system loses few packets at almost any load. Shorter trials give a higher NDR: compare only equal goals.",
    ),
    Explanation(
        "pdr",
        "PDR, partial drop rate",
        "The highest load at which the loss ratio stays within a stated bound, here 0.5 % unless the goal "
        "says otherwise.",
        "Packets per second, all service instances and both directions together.",
        "Found by the same search as NDR, whose trials serve both goals. The loss ratio is over all instances and "
        "directions; the fairness index shows whether a single instance has the loss.",
        "Other projects use other ratios under the same name (0.1 % is common). PDR is meaningless without its ratio.",
    ),
    Explanation(
        "mrr",
        "MRR, maximum receive rate",
        "The rate received at line rate, or at the maximum of the generator if that is lower, at any loss; as in "
        "FD.io CSIT.",
        "Packets per second, all service instances and both directions together.",
        "Several trials of a fixed length at that load; the page shows their mean and standard deviation.",
        "It is not a rate for operating a service. Overload may reduce it far below NDR (receive livelock: threads "
        "that receive packets leave no CPU time to those that forward them, so that more offered load means less "
        "throughput), or leave it above PDR. It depends on the offered load, which the page states. If ORR is "
        "higher, the system forwards less under more load.",
    ),
    Explanation(
        "soak",
        "SOAK, soak rate",
        "The load at which the mean loss ratio is very small, one in ten million unless the goal says otherwise: an "
        "estimate minus and plus its standard deviation.",
        "Packets per second, all service instances and both directions together.",
        "PLRsearch (draft-vpolak-bmwg-plrsearch), as in FD.io CSIT: two functions of loss over load are fitted to all "
        "trials. The bounds are the mean of both minus and plus its deviation, due to the trials and to their "
        "difference. Selected by `-v SEARCH:soak`.",
        "It is extrapolated, and no longer NDR: NDR permits no loss in a trial, but permits bad trials. Soak rates of "
        "different ratios are not comparable. The deviation does not include how well the functions fit the system: a "
        "sharp edge is one or two percent above the estimate.",
    ),
    Explanation(
        "orr",
        "ORR, overload receive rate",
        "The rate received at a chosen overload: at most four times the highest rate received.",
        "Packets per second, all service instances and both directions together.",
        "Short trials at the highest load, at half of it and so on find the best rate; then several trials of a fixed "
        "length at four times this rate, the load at which a search starts too. The page shows their mean and standard "
        "deviation. It is not measured if line rate, or the maximum of the generator, is lower: "
        "then it would equal MRR.",
        "It is not CSIT's MRR, and not a rate for operating a service.",
    ),
    Explanation(
        "rfc9971",
        "Requirements of RFC 9971",
        "Requirements of the MLRsearch specification for a test and its report, and whether this result meets them.",
        "Met, or deviates.",
        "Deviations are determined by the run and are in the record; the evidence beside them is from its trials and "
        "bounds. docs/search.md has each requirement with how it is met.",
        "The RFC permits deviations from RFC 2544's trial if they are reported, as here. An irregular result is no "
        "fault of the system: the load range, or the time for the search, was too short.",
    ),
    Explanation(
        "other-goals",
        "Other definitions of NDR and PDR",
        "What the trials of a search say about the definitions of others: RFC 2544, TST 009, NFVbench and more.",
        "Packets per second, all service instances and both directions together.",
        "Trials of at least the other goal's duration classify their load as in draft-ietf-bmwg-mlrsearch. Shorter "
        "ones give a bound if, with 95 % confidence, enough trials of full length would fail (each contains one that "
        "loses too much) or pass (all its parts are within the loss ratio). Otherwise the load, number and duration of "
        "the missing trials are shown. Nothing is measured for it: `./csit regoal` does the same for any goal.",
        "Bounds by shorter trials assume independent trials; losses that come in groups make an upper bound too "
        "low. A pause between trials, or another generator, is not part of the definition here.",
    ),
    Explanation(
        "bandwidth",
        "Bandwidth",
        "The packet rate expressed in bits.",
        "Bits per second, both directions together. L2 counts the frame with FCS; L1 adds 20 bytes per frame "
        "(preamble, start delimiter, gap between frames) and is what fills a physical line.",
        "Computed from the packet rate and the mean frame size, not measured.",
        "The sum of both directions: 20 Gbit/s is a saturated 10 Gbit/s line in each direction.",
    ),
    Explanation(
        "prediction",
        "Predicted NDR and PDR",
        "Lower bounds of a cell by the cells of its matrix that the same run measured before, with an interval.",
        "Packets per second, all service instances and both directions together.",
        "A cost model is fitted to at least three cells: the vSwitch's time per packet at the edges and for each "
        "further NF, times a factor for the number of instances, or the NFs' own time where that is longer. The "
        "interval of 95 % follows from the errors of earlier predictions in the run. A search starts from "
        "predictions with a standard error of at most 3 %; docs/search.md has the method.",
        "A prediction is no evidence: all trials of each bound are made. A result outside of the interval is a cell "
        "that behaves unlike its neighbours: look at its verdict and placement. `-v PREDICT:off` searches without.",
    ),
    Explanation(
        "back-to-back",
        "Back-to-back frames",
        "The longest burst at the generator's highest rate of which no frame is lost, and the buffer that it implies.",
        "Frames of each flow (instance and direction), and seconds.",
        "RFC 9004: a search in each of several repetitions (`-v BACK_TO_BACK:50`), for all flows at once; a burst that "
        "loses frames is repeated once before it counts as failed. The implied buffer time is the mean burst over the "
        "rate at which it was sent; the corrected one is smaller by the share of NDR in that rate, because as much is "
        "forwarded meanwhile.",
        "A buffer in frames per flow is that of the narrowest queue on the path. A generator in software sends bursts "
        "below line rate: the rate is stated, and a slower burst can be longer. Where NDR reaches the rate of the "
        "bursts no buffer fills, and nothing is measured.",
    ),
    Explanation(
        "qualification",
        "Qualification of the generator",
        "What the traffic generator can do by itself: rates, rate error, gaps between frames, latency floor.",
        "For each frame size and number of flows; rates are aggregates of all flows.",
        "The generator's ports are joined to each other by veth pairs, and frames are received on a CPU that sends "
        "nothing. The highest rates without loss and with a loss of 0.5 % are searched; a load counts as reached "
        "when one of two trials reaches it. The rate error is that of the worst trial. Gaps are those between two "
        "arrivals of a flow at 100 kpps, by the kernel's time stamps; the latency floor is the shortest latency of "
        "1000 probe frames per second without load. `./csit qualify TOPOLOGY` measures it, and a run does so "
        "shortly where there is none (`-v QUALIFY:off` for not at all). Where a trial of a test loses nothing at a "
        "higher rate, the run measures these frames and flows again after the test, once. RFC 2544 (26.1) defines the "
        "rate without loss; joined ports are its set-up without a device under test.",
        "A figure has the verdict unqualified where its rate is beyond these rates, where a load above them failed, "
        "where a pause of the generator (99.9th percentile of the gaps) is followed by more frames than a receive "
        "queue of 256 takes, or where a latency is below the floor. A figure of a mix, or of another number of "
        "flows, is compared with the next smaller frame and number that were measured. Gaps include the wake-up of "
        "the thread that receives. NICs of a lab are not qualified: a loop through a DUT would measure the DUT, "
        "too.",
    ),
)
_DENSITY = (
    Explanation(
        "instances-that-fit",
        "How many instances fit",
        "The largest measured number of service instances that meets a rate and a latency.",
        "Service instances.",
        "Offered the rate, no instance may lose more in either direction than NDR or PDR allows, and with a latency "
        "bound, p99 of every instance and direction has to be below it; a lost probe counts as too late. What is met "
        "at a higher load is met, what is missed at a lower load is missed. All tests of a cell must agree.",
        "Nothing is interpolated: 4 means that 4 was measured, and perhaps not 5. Between a load that met the bound "
        "and one that missed it, the answer is open, and names the trial that decides: ./csit answer --measure runs "
        "it.",
    ),
    Explanation(
        "verdict",
        "Verdict",
        "Reliability of a figure, and what limits it.",
        "One or more words, most important first, each with evidence in numbers.",
        "vswitch-bound, nf-bound: above its limit, the system loses packets there. generator-bound: the system can do "
        "more than was offered. unstable: two bands, NDR far under PDR or above it, or more forwarded beyond the bound "
        "than at it. decaying: repeated loads were forwarded less each time, which ended the search. "
        "host-noise: interruptions of the data CPUs alone lose more than the goal allows. "
        "unqualified: beyond what the generator can do by itself. "
        "below-range: the lowest load lost too much. incomplete: the search ran out of time. oversubscribed: "
        "data threads shared cores. quarantined: the cell broke the system under test twice and was given up. "
        "no-traffic, affinity-lost, emulated, skipped, failed: see the evidence. measured: none of them.",
        "Each figure has its own: PDR may be generator-bound where NDR is vswitch-bound. The place of the loss and the "
        "CPU time of threads may contradict each other; then both are shown. `generator-bound` figures are lower "
        "bounds, shown with ≥.",
    ),
    Explanation(
        "per-core",
        "Throughput per core",
        "Throughput per data core: the cost of density.",
        "Packets per second per physical core.",
        "Throughput divided by cores, counted in three ways. Data cores: those that the cell requests, of the vSwitch "
        "and of all NFs. Slides' cores: main threads too, an NF's as half a core, 2 + 1.5 S N for NF-1c. Real cores: "
        "all cores of the plan, system core included and halves rounded up. None includes the generator's cores.",
        "In an oversubscribed test the requested cores do not exist, so the quotient describes no real machine. With "
        "vSwitch and NFs of different sizes the mean hides which of them is the bottleneck.",
    ),
    Explanation(
        "efficiency",
        "Efficiency against 1x1",
        "Throughput relative to one service instance with one NF.",
        "Percent of the 1x1 cell of the same matrix.",
        "Of 1x1: throughput of the cell divided by that of 1x1, if 1x1 was measured and has both bounds. NF hops: "
        "that times the NFs each packet crosses. Per NF hop: NF hops divided by the number of NFs, the share of its "
        "single-NF rate that each NF still has; 100 % is perfect scaling.",
        "Of 1x1 compares total throughput. Ten instances at 80 % do not get 80 % each, they share it: 8 % per NF hop.",
    ),
    Explanation(
        "fairness",
        "Fairness (Jain's index)",
        "Equality of the throughput of all service instances.",
        "1 if all are equal, 1/n if one instance of n has all throughput.",
        "(sum x)² / (n · sum x²) over the rates forwarded per instance, both directions, in the good trials of the "
        "NDR and PDR lower bounds, and in overload: in the trial beyond the bounds that locates losses, or in those "
        "of MRR and ORR. All instances are offered the same.",
        "At NDR and PDR little is lost, so it is close to 1 even if one instance has all the loss: see the worst "
        "instance's loss beside it, and at the index in overload.",
    ),
    Explanation(
        "core-map",
        "Core map",
        "Planned and actual logical CPU of each thread.",
        "One box per logical CPU, siblings of a physical core side by side; one map per machine.",
        "The planner places threads; their affinity is read after deployment and after measuring, and the table shows "
        "where each was allowed to run.",
        "On a shared CPU, a data thread has to wait for another busy thread. Siblings share a core too, "
        "despite two boxes: two data threads on one core have less than two cores. CPU numbers of two machines "
        "are unrelated.",
    ),
)
_LATENCY = (
    Explanation(
        "latency",
        "Latency",
        "One-way time of a packet from the generator through the service and back to the generator.",
        "Nanoseconds in files, shown in µs or ms; by instance, direction and load.",
        "Probe frames at a low rate on top of the load; every probe is a sample of an HDR histogram. Loads are percent "
        "of PDR; PDR0 sends probes only. SOAK90 and so on are percent of the soak rate.",
        "With 1,000 samples there is no 99.99th percentile: curves end accordingly. Lost probes have no latency, "
        "so a curve with loss looks better than it is. The figure includes generator and time stamping.",
    ),
    Explanation(
        "latency-map",
        "Latency heat map",
        "A percentile of latency in every cell of the matrix, of the worst instance in the worse direction.",
        "Time one way; the colour scale is logarithmic, one for each percentile.",
        "Of the newest test of the cell. The percentile is that of all probes sent: if more than 1 % of "
        "them are lost, p99 may be one of the lost ones and is unknown. p99 needs 100 samples and p99.9 needs 1,000; "
        "with fewer it would be the maximum. Such cells are marked.",
        "PDR50 is half of the cell's own PDR, so a dense cell is measured at a lower rate than a sparse one; hover for "
        "the rate. The worst of ten instances is higher than that of one even if all are equal, because more "
        "are measured.",
    ),
    Explanation(
        "latency-tail",
        "Cause of a latency tail",
        "The part of the 99.9th percentile above the median that interruptions of the CPUs on the path explain.",
        "Microseconds, for the flow with the longest tail at each load; in the evidence of the latency verdict.",
        "The waiting time of a packet at a CPU with this noise floor: the workload of an M/G/1 queue whose jobs are "
        "interruptions (Pollaczek-Khinchine; Takagi, Queueing Analysis, vol. 1, 1991), at the utilization "
        "of the load, added up over the data CPUs of the path. The host causes the tail if that explains half of it "
        "or more, an NF or a vSwitch if it explains less than a tenth, otherwise both do.",
        "The noise floor is that of idle CPUs before the run. Interrupts of NICs and softirqs under load come on top "
        "of it, and count as the system's.",
    ),
    Explanation(
        "noise-floor",
        "Noise floor",
        "How often, and for how long, idle data CPUs are interrupted.",
        "Interruptions per second, share of the time, and the longest interruption, for each CPU that plans may use.",
        "Before a run, a thread with real-time priority reads the clock on each of these CPUs for 0.9 s "
        "(`-v NOISE_FLOOR:5` for longer, 0 for not at all). A gap of 2 µs or more between two readings is an "
        "interruption, as in `oslat` of rt-tests. Interrupts, preemptions, steal time and, where they can be read, "
        "System Management Interrupts in the same period are listed beside it.",
        "A receive queue of 256 frames that gets 1 Mpps overflows in 256 µs: interruptions limit NDR whatever NF "
        "or vSwitch is measured, and that limit is reported before the search. Interruptions that occur less than once "
        "a second are mostly missed. Receive queues may be longer than 256 frames; a rate well above the limit is "
        "therefore not attributed to the host.",
    ),
)
_LOSSES = (
    Explanation(
        "loss-by-hop",
        "Loss by hop",
        "Losses of each instance and direction between two hops of the path, and the owner that they are charged to.",
        "Packets, in trials that offer more than the system can take.",
        "Counters of all interfaces are read before and after. Packets that met a full receive queue are charged to "
        "the receiver, though on virtual links the sender counts them as dropped. What an owner received and did not "
        "send, it dropped itself. CPU time is that of the data threads in the same trials.",
        "It shows where packets are lost in overload. On data threads that share a CPU, the one whose queue overflows "
        "need not be the slow one. Threads that poll always run: their CPU time is no indicator.",
    ),
    Explanation(
        "loss-pattern",
        "Loss pattern",
        "How lost packets are distributed over a flow: at random, in bursts, at regular times, or evenly; with "
        "their number, the lengths of loss periods (RFC 3357: runs of consecutive losses) and the distances between"
        " them.",
        "Packets and seconds, per service instance and direction, in one trial each at NDR, PDR and 1.2 times PDR.",
        "Every packet has a number, and the mark of its flow and trial; an XDP program at the receiver keeps a bit"
        " for each, from which all figures are computed after the trial. Packets with another mark are counted "
        "apart. The hops that lost the packets of a load are those of its counters. Random: loss periods as many "
        "as of independent losses (test of Wald and Wolfowitz) and losses in windows of packets as dispersed "
        "(index of dispersion 1), both within four standard deviations. Regular: the time between bursts varies by"
        " less than 10 %, or the periodogram of losses has a peak that noise makes with a probability of 1e-4. A "
        "burst is losses with fewer than 16 packets received between two (Gmin of RFC 3611); its stated size is "
        "the one that the median lost packet belongs to. Selected by `-v LOSSES:1`, the length of a trial in "
        "seconds.",
        "1 in 1,000 at random costs a TCP connection less than the same losses in bursts, which a voice codec "
        "cannot conceal. A period points to a timer: 4 ms or 1 ms is a scheduler's tick, 10 ms to 1 s a "
        "housekeeping thread. Fewer than 10 losses have no pattern. Times are those at which packets were sent.",
    ),
    Explanation(
        "reordering",
        "Reordering and duplicates",
        "Packets that arrive after one that was sent later, and packets that arrive more than once.",
        "Packets and their share, per service instance and direction.",
        "RFC 4737: a packet is reordered if its number is less than one that has arrived; its extent is the "
        "distance in packets to the first such one; it is n-reordered if the n packets directly before it were sent"
        " later. RFC 5236: reorder density is the distribution of places by which packets arrive late or early, "
        "lost and duplicate packets left out; the buffer occupancy is what a receiver has to hold to restore the "
        "order.",
        "Only packets that are 3-reordered or more make TCP retransmit; a small extent is harmless. Packets of one "
        "flow that a physical NIC spreads over several receive queues have no order there: it is then unknown, not "
        "zero.",
    ),
)
_TRAFFIC = (
    Explanation(
        "flows",
        "Flows",
        "Number of flows (5-tuples) in each direction of each service instance, where it was chosen.",
        "Flows of each instance and direction, 1 to 1,000,000.",
        "`-v FLOWS:1,1000,1000000` makes a test of each number with each frame size. Flows are UDP, differ in their "
        "source address (the first 65,534) or also in their source port, and take turns packet by packet. Without "
        "FLOWS packets have 254 source addresses and no ports. After RFC 4814: addresses and ports vary, as hashes and "
        "caches expect of traffic; its pseudorandom order is replaced by turns, so that all flows have the same rate.",
        "Packets in turns are the worst case of a cache: traffic of a network revisits few flows more often. A trial "
        "with fewer packets than flows has not sent them all. Latency probes have their own port, so they are "
        "further flows, of the same addresses.",
    ),
    Explanation(
        "ip-version",
        "Version of IP",
        "The version of IP of the packets of a test.",
        "4 or 6; a frame of IPv6 is named `128B-ip6`.",
        "`-v IP_VERSION:4,6` makes a test of each with each frame size. IPv6 packets are UDP with a checksum; IPv4 "
        "packets are UDP without one where FLOWS chooses a number of flows, and have no ports otherwise. RFC 5180 "
        "extends RFC 2544 to IPv6 this way: the same tests, with headers of IPv6.",
        "Compare both versions with the same FLOWS: packets without ports are less work for some NFs.",
    ),
    Explanation(
        "capture",
        "Packets of a capture",
        "A load made of the packets of a capture file, with the addresses of each service instance.",
        "Frames `pcap-<file>-<8 digits of its SHA-256>`; mean size in bytes, L2 with FCS.",
        "`-v FRAMES:pcap:FILE` sends the packets in their order, again and again, at the offered rate. Sizes, "
        "protocols, ports and payloads stay; MAC and IP addresses, TTL and checksums are rewritten, and VLAN tags "
        "and an FCS that the file declares are removed. "
        "File formats: pcap (draft-ietf-opsawg-pcap) and pcapng (draft-ietf-opsawg-pcapng).",
        "The rate is even: bursts of the capture are not reproduced. TCP packets have no connection, so NFs that check "
        "connections drop them. Latency is that of probes of the same sizes.",
    ),
)
_COSTS = (
    Explanation(
        "energy-per-packet",
        "Power and energy per packet",
        "Power of the system under test before the deployment and at 0, 10, 50 and 90 % of PDR, and the energy of each "
        "packet that arrived.",
        "Watts with the uncertainty of the meter, and joules per packet: all of the power over the rate at which "
        "packets came back, and the same above the power before the deployment.",
        "Trials of the length of `-v ENERGY:10` in which the meter of each node is read: energy counters of the "
        "processors (RAPL) in the kernel's powercap class, the DCMI power reading of a BMC over IPMI, or the power of "
        "a chassis over Redfish (DSP0268). Only readings from the time in which traffic was sent for certain count. "
        "Idle, loaded and per-throughput power as in draft-ietf-bmwg-powerbench, at shares of PDR. The "
        "uncertainty is that of the meter's resolution and update interval: 1 ms for RAPL (Intel SDM, volume 3B, "
        "15.10.1), the topology's `interval_s` for a BMC, whose readings also add their standard error.",
        "RAPL has the processors and, on servers, their memory: no NICs, fans or power supplies. A BMC has the whole "
        "machine. On a testbed of one machine the generator takes part of the power. Data CPUs that poll are busy, and "
        "take power, without any traffic: compare energy and p99 with those of an adaptive data plane.",
    ),
    Explanation(
        "node-costs",
        "Cost of packets by node",
        "Time that a packet takes in each node of the graph, or in a polling thread, of vSwitch and NFs that count it, "
        "and, with `-v STACKS:10`, in stages of the kernel such as NAPI and netfilter hooks.",
        "Clocks of the CPU's time-stamp counter by the program's own account, with the resolution in which it prints "
        "them; nanoseconds of CPU time by samples, with a 95 % interval.",
        "Counters are set to zero before a trial at PDR, or before those of MRR, and read once after it, so that "
        "reading costs no rate. Packets per call are those of a batch, in a graph its vectors per call.",
        "Few packets per call mean that a thread is starved, not slow: each packet then carries more of what a call "
        "costs. Polls without a packet count for the packets that came. `./csit compare` names nodes that changed, "
        "between single runs from 2 % on only: two deployments of one system differ, too.",
    ),
    Explanation(
        "call-stacks",
        "Call stacks and flame graphs",
        "Which functions take the CPU time of vSwitch and NFs at the rate that was found; between two sides, or in a "
        "suspect chain, which take more or less.",
        "Share of the samples of the cell, and CPU time per packet in nanoseconds: samples over their frequency, over "
        "the packets that came back. A sample counts for every function in its stack.",
        "One trial of the length of `-v STACKS:10` at PDR, or at NDR where there is no PDR, after the search and none "
        "of its trials. perf samples the data CPUs of vSwitch and NFs 149 times a second, by cycles where the machine "
        "has the counter and by the kernel's timer (cpu-clock) elsewhere; callers are found by frame pointers. A box "
        "of a flame graph (Gregg, The Flame Graph, CACM 59 (6), 2016) is a function, called by those above, as wide as "
        "its share. In a difference, red has grown and blue has shrunk; grey is within the noise of sampling: two "
        "proportions are tested, with the spread between runs where a side has several, and p-values are adjusted for "
        "the number of functions (Benjamini and Hochberg, 1995). A suspect of a chain study and its reference are "
        "sampled at the same load, so times per packet are compared, as rates of a Poisson process.",
        "Shares add up to 1: where one function grows, all others shrink, so compare the time per packet too. With one "
        "run per side, a difference between two deployments of the same system counts as a change. Programs without "
        "frame pointers have stacks that end early. cpu-clock cannot interrupt code that runs with interrupts off: its "
        "samples fall on the code after it. Work inside of virtual machines counts for the virtual machine as a whole.",
    ),
)
EXPLANATIONS = {
    "Throughput": _THROUGHPUT,
    "Density": _DENSITY,
    "Latency": _LATENCY,
    "Losses": _LOSSES,
    "Traffic": _TRAFFIC,
    COSTS: _COSTS,
}


Likenesses = dict[str, dict[str, dict[str, tuple[str, ...]]]]


def _matrices(shown: ReportContents) -> Mapping[str, object] | None:
    if not shown.systems:
        return None
    figures = [figure for view in shown.systems for block in view.blocks for figure in block.figures]
    figures += [view.flows for view in shown.systems if view.flows]
    series = [matrix.series for view in shown.systems for block in view.blocks for matrix in block.matrices]
    return {
        "systems": shown.systems,
        "figures": figures,
        "runs": runs_shown(shown),
        "heat": {"shades": shades(), "unlike": _unlike(series)},
    }


def _unlike(series: Sequence[Series]) -> Likenesses:
    """By metric, what stands between figures of two kinds of series, where there is anything."""
    kinds = {kind_of(one): one for one in series}
    found: Likenesses = {}
    for metric in THROUGHPUTS:
        for (one, a), (other, b) in product(kinds.items(), repeat=2):
            between = likeness(a, b, metric)
            if between.differences or between.remarks:
                notes = {"differences": between.differences, "remarks": between.remarks}
                found.setdefault(metric, {})[f"{one}|{other}"] = notes
    return found


_MATRICES = Page("density", "Density", _matrices)


STUDY = Study(
    order=10,
    pages=(_MATRICES, results.PAGE, latency.PAGE, fairness.PAGE, losses.PAGE, energy.PAGE),
    group="Density",
    explanations=EXPLANATIONS,
)
