"""How to read what is written around figures."""

from csit_utils.report.explaining.explanation import Explanation

MARKS = (
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
