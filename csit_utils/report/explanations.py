"""How to read a metric: one explanation each, for the report and for `./csit explain`."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Explanation:
    """Definition of a metric, and how not to misread it."""

    name: str
    title: str
    what: str
    unit: str
    how: str
    misread: str


SHARED = (
    Explanation(
        "trend-step",
        "Step of a trend",
        "A night from which a cell's throughput stayed at another level: a regression or a progression.",
        "Percent of the level before.",
        "Levels are medians. A step is called where noise, taken as wide as neighbouring nights differ and with heavy "
        "tails, makes such a split anywhere in any series with a chance of 1 % at most, for all series together. It "
        "takes three nights at least, more for a step that is small against the noise. Nights without a figure are "
        "left out and are no zeros.",
        "The night is where the level most likely changed, and may be off by one where noise is large. A suspected "
        "step rests on the last night or two: an outlier looks the same until more nights are measured. No step does "
        "not mean that nothing changed, only nothing that stands out of the noise.",
    ),
    Explanation(
        "two-bands",
        "Two bands",
        "A cell goes back and forth between two levels from run to run, with little in between.",
        "The two levels, and the share of runs in the lower one.",
        "Runs are split where they lie farthest apart; either group needs three runs and a tenth of all, both are "
        "visited again and again, and in an order that may be chance. Such a cell has no steps.",
        "A fall from the upper band to the lower is no regression, and the mean of the two is a rate that never "
        "occurs. Something decides at deployment (placement of memory, order of queues): find that first.",
    ),
    Explanation(
        "confidence",
        "Change and its confidence interval",
        "By how much B differs from A, and how sure that is.",
        "Percent of A.",
        "Of several runs on both sides the means are compared by Welch; a single run borrows the spread of the other "
        "side; the interval holds the true change in 95 of 100 cells. One run against one is judged by how "
        "differently the cells of the matrix changed; with fewer than eight cells by the bounds of the searches. "
        "Which cells are called changed is judged for all together: of those calls one in 20 may be chance (Benjamini "
        "and Hochberg).",
        "An interval around 0 does not prove that nothing changed. Two single runs of few cells whose bounds lie "
        "apart did differ, but nothing tells how much runs of one system differ: repeat them. Unlike loss ratios, "
        "frames or trial lengths mean unlike figures, and are refused.",
    ),
    Explanation(
        "box-plot",
        "Box plot of repeated runs",
        "How the figures of one cell spread over its runs.",
        "Packets per second, one point per run.",
        "The box reaches from the first to the third quartile, interpolated between runs, with the median in it. "
        "Whiskers reach to the last run within 1.5 times the box (Tukey). All runs are shown as points and n is their "
        "number. Fewer than three runs have no box. Where the trend has a step, each level has a box of its own, with "
        "its nights.",
        "A box of three runs is three points with a frame. A box may look harmless where the points lie in two groups "
        "with nothing between: look at the points. A step that is too small or too fresh to be called is still "
        "inside a box.",
    ),
    Explanation(
        "variation",
        "Coefficient of variation",
        "How far runs of a cell differ, against its level.",
        "Percent: standard deviation over mean.",
        "The sample standard deviation of the figures of all runs of the same system, goals and frame, divided by "
        "their mean; of each level for itself where the trend has a step.",
        "Of a search it cannot be smaller than the width between the bounds makes it. A drift, and a step that is too "
        "fresh to be called, count as variation too.",
    ),
    Explanation(
        "not-passed",
        "Causes",
        "Tests that did not pass, put together by what their messages have in common.",
        "Tests.",
        "The first line of each message without its numbers, names of cells, parts, interfaces and files; equal rests "
        "are one cause. First and last seen are over all runs that were read.",
        "One sentence may have two reasons, and one reason may show in two sentences. A cell that does not fit is an "
        "answer of the planner, not a fault. A quarantined cell fails once and its other tests are skipped.",
    ),
    Explanation(
        "environment",
        "Environment",
        "The machine and the software that a test ran on, nodes of a lab included.",
        "Text; two tests have the same digest when all that is recorded is equal.",
        "Read from the machine when the testbed is opened: CPU, microcode, kernel and its command line, versions, what "
        "decides scheduling, the revision of the suite.",
        "Equal digests do not promise equal machines: firmware settings, cables and neighbours on a virtual machine "
        "are not recorded. A difference need not be the reason of another result; the list puts the usual ones first.",
    ),
    Explanation(
        "capsule",
        "Run a test again",
        "The commands that run exactly this test, and what decided its result.",
        "Shell commands; lines with # are facts.",
        "The cell, its sizes, frame and search come from the record, the testbed's file and the suite from the run. "
        "The plan's digest is in the new record too: where it is the same, cores and wiring are.",
        "The same plan is not the same machine: compare the environments. The testbed's file may have changed since; "
        "then the digest of the plan tells. Where the suite had uncommitted changes, the revision is not all of it.",
    ),
    Explanation(
        "oversubscribed",
        "Oversubscribed",
        "Data threads shared cores, because the machine has fewer than the cell asks for.",
        "A mark on a cell, bar or row.",
        "The planner decides it before the test and the core map shows it.",
        "Such a number shows that the cell works and what this machine does with it. It is not a density figure.",
    ),
    Explanation(
        "simulated",
        "Simulated",
        "No packet was sent: rates, loss and latency come from a model with a virtual clock.",
        "A banner on every section, figure and table row.",
        "The same planner, search and report run as on hardware; only the drivers differ.",
        "It says nothing about any real system. It is never put into one matrix with measured results.",
    ),
    Explanation(
        "cell",
        "Cell of the density matrix",
        "S services of N network functions each, written SxN; row and column of the matrix.",
        "Counts.",
        "VSC and CSC are snakes: every hop crosses the vSwitch, N+1 times in all. CSP is a pipeline: NFs are linked to "
        "each other and only the edges cross the vSwitch, twice.",
        "More NFs per service is not the same as more services: compare along one axis at a time.",
    ),
)
"""Explanations that belong to no study: comparisons of several runs, and marks beside figures."""
