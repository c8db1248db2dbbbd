"""Explanations of metrics, for the report and for `./csit explain`."""

from csit_utils.dataset.measures import Explanation

COSTS = "Energy and CPU time"
"""Heading of costs, which measures have as well as density tests."""

_RUNS = (
    Explanation(
        "trend-step",
        "Step of a trend",
        "A lasting change of a cell's throughput: a regression or a progression.",
        "Percent of the level before.",
        "Levels are medians. A step is reported if noise, estimated from differences of adjacent nights and with heavy "
        "tails, makes such a split anywhere in any series with a probability of at most 1 % over all series. It "
        "takes at least three nights, more for a step that is small against the noise. Nights without a figure are "
        "omitted, not counted as zero.",
        "The night of the change is the most likely one, and may be off by one if the noise is large. A suspected "
        "step rests on the last one or two nights: an outlier looks the same until more are measured. A probable step "
        "is significant only because others changed in the same night: of cells without a change, about one in 100 "
        "gets its hollow mark. No step does not mean no change, only none that is significant against the noise.",
    ),
    Explanation(
        "two-bands",
        "Two bands",
        "A cell alternates between two levels from run to run, with few figures in between.",
        "The two levels, and the share of runs in the lower one.",
        "Runs are split at the largest separation; each group needs three runs and a tenth of all, both are "
        "entered repeatedly, in an order consistent with chance. Such a cell has no steps.",
        "A change from the upper to the lower band is no regression, and the mean of the two is a rate that never "
        "occurs. Deployment decides on the band (placement of memory, order of queues): find the reason first.",
    ),
    Explanation(
        "confidence",
        "Change and its confidence interval",
        "Relative difference of B from A, and its uncertainty.",
        "Percent of A.",
        "Several runs per side are compared by Welch's t-test; a single run takes the variance of the other "
        "side. The interval covers the true change in 95 of 100 cells. Single runs on both sides are judged by the "
        "spread of changes over the matrix; with fewer than eight cells by the bounds of the searches. "
        "Significance is adjusted for the number of cells: at most one in 20 reported changes is false (Benjamini "
        "and Hochberg).",
        "An interval that includes 0 does not prove that nothing changed. Two single runs of few cells whose bounds do "
        "not overlap differ, but the noise between runs is unknown: repeat them. Figures with different loss ratios, "
        "frames or trial lengths have different meanings and are not compared.",
    ),
    Explanation(
        "box-plot",
        "Box plot of repeated runs",
        "Distribution of the figures of one cell over its runs.",
        "Packets per second, one point per run.",
        "The box extends from the first to the third quartile, interpolated between runs, with the median. "
        "Whiskers extend to the last run within 1.5 times the box (Tukey). All runs are shown as points; n is their "
        "number. Fewer than three runs have no box. If the trend has a step, each level has its own box, with "
        "its nights.",
        "A box of three runs says no more than its points. A box can hide that the points form two groups "
        "with nothing between: look at the points. A step that is too small or too recent to be reported is still "
        "inside a box.",
    ),
    Explanation(
        "variation",
        "Coefficient of variation",
        "Variation between runs of a cell, relative to its level.",
        "Percent: standard deviation over mean.",
        "The sample standard deviation of the figures of all runs of the same system, goals and frame, divided by "
        "their mean; for each level separately if the trend has a step.",
        "For a search, the width between the bounds limits it from below. A drift, and a step that is too "
        "recent to be reported, count as variation too.",
    ),
)
_TESTS = (
    Explanation(
        "cell",
        "Cell of the density matrix",
        "S service instances of N network functions (NFs) each, written SxN; row and column of the matrix.",
        "Counts.",
        "VSC and CSC are snakes: every hop crosses the vSwitch, N+1 times in all. CSP is a pipeline: NFs are linked to "
        "each other and only the edges cross the vSwitch, twice.",
        "More NFs per instance is not the same as more instances: compare along one axis at a time.",
    ),
    Explanation(
        "simulated",
        "Simulated",
        "No packet was sent: rates, loss and latency come from a model in virtual time.",
        "A banner on every section, figure and table row.",
        "Planner, search and report are the same as on hardware; only the drivers differ.",
        "It says nothing about a real system, and is never in one matrix with measured results.",
    ),
    Explanation(
        "oversubscribed",
        "Oversubscribed",
        "Data threads shared cores, because the machine has fewer than the cell needs.",
        "A mark on a cell, bar or row.",
        "Decided by the planner before the test, and shown in the core map.",
        "The figure shows that the cell works on this machine. It is not a density figure.",
    ),
    Explanation(
        "not-passed",
        "Causes",
        "Tests that did not pass, grouped by the common part of their messages.",
        "Tests.",
        "The first line of each message without numbers, names of cells, components, interfaces and files; equal lines "
        "are one cause. First and last seen are over all runs read.",
        "One message may have two reasons, and one reason may cause two messages. A cell that does not fit is a "
        "result of the planner, not a fault. A quarantined cell fails once, and its other tests are skipped.",
    ),
    Explanation(
        "environment",
        "Environment",
        "Machine and software of a test, nodes of a lab included.",
        "Text; two tests have the same digest if all recorded values are equal.",
        "Read from the machine when the testbed is opened: CPU, microcode, kernel and its command line, versions, "
        "scheduler settings, revision of the suite.",
        "Equal digests do not imply equal machines: firmware settings, cables and other guests of a virtual host "
        "are not recorded. A difference need not explain a result; the list has the usual reasons first.",
    ),
    Explanation(
        "capsule",
        "Run a test again",
        "Commands that run exactly this test, and the conditions of its result.",
        "Shell commands; lines with # are facts.",
        "Cell, sizes, frame and search come from the record, topology file and suite from the run. "
        "The new record has a digest of its plan: if it is the same, cores and wiring are the same.",
        "The same plan does not imply the same machine: compare the environments. If the topology file has changed, "
        "the digest of the plan differs. If the suite had uncommitted changes, its revision is incomplete.",
    ),
)
SHARED = {"Runs and history": _RUNS, "Cells and tests": _TESTS}
"""Explanations shared by all studies: comparisons of runs, and marks beside figures."""
