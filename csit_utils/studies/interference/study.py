"""Interference studies in reports: what co-located network functions cost each other, and their records."""

from collections.abc import Iterator

from csit_utils.dataset.measures import Explanation, Measure, MeasuredSubject, MeasuredValue
from csit_utils.dataset.rows import frame_text
from csit_utils.report.study import QueriedTables, RecordKind, Study
from csit_utils.report.units import rate
from csit_utils.studies.interference.page import PAGE, WAYS
from resources.libraries.python.model.request.cell import Dimensions
from resources.libraries.python.studies.interference.analysis import tables
from resources.libraries.python.studies.interference.analysis.sentences import headline, sentences
from resources.libraries.python.studies.interference.analysis.tables import matrices
from resources.libraries.python.studies.interference.model.record import Interference, load_interference
from resources.libraries.python.studies.interference.planning import cost

EXPLANATIONS = (
    Explanation(
        "normalized-throughput",
        "Normalized throughput",
        "Throughput of a network function with co-located ones, relative to its throughput alone.",
        "1 is no interference; 0.6 means that 40 % are lost. With its 95 % confidence interval (Fieller).",
        "Each has its own traffic. Alone it runs in the same place, on the same CPUs, as beside others; the order of "
        "measurements is shuffled in each repetition.",
        "For a monitor it is the rate that its program inspected, not the forwarded rate. On few cores network "
        "functions, vSwitch and generator share CPUs; interference is then mostly competition for CPU time.",
    ),
    Explanation(
        "sensitivity",
        "Sensitivity",
        "Throughput that a network function loses beside another one, mean over all neighbours, including a second "
        "instance of itself.",
        "Percent of its throughput alone, with the 95 % confidence interval. Rank 1 is the most sensitive; a range of "
        "ranks is a tie.",
        "One minus the mean of its row of normalized throughputs (Zeng et al.). Ranks by Holm's procedure over all "
        "pairs of network functions: any wrong rank in a study has a probability of at most 5 %. Before that, a test "
        "that there is any interference at all.",
        "A mean over the neighbours of this study; others may cause more or less loss.",
    ),
    Explanation(
        "aggressiveness",
        "Aggressiveness",
        "Throughput that others lose beside a network function, mean over all targets.",
        "Percent of their throughput alone, with the 95 % confidence interval and ranks as for sensitivity.",
        "One minus the mean of its column of normalized throughputs.",
        "All were offered the same load. One that cannot accept its load may cause less loss than it would otherwise.",
    ),
    Explanation(
        "network-share",
        "Share of a resource",
        "The part of the degradation that disappears when each has an equal share of the network I/O, or of the CPU "
        "time, guaranteed.",
        "Percent of the mean degradation, with the 95 % confidence interval (Fieller). None where the interval of the "
        "degradation has 0 in it. A share below 0: more is lost with the guarantee than without.",
        "All pairs once more with each limited to its part of the line, or of the CPUs that several use, over the same "
        "throughput alone, without a limit; (guaranteed - without) / (1 - without), of the means.",
        "A traffic limit also limits the CPU time of neighbours, so on shared CPUs this is not the share of the "
        "network alone. Shares of two resources need not add up to 100 %. Network functions on CPUs of their own have "
        "all of their CPU time anyway.",
    ),
    Explanation(
        "placement-advice",
        "Advice on placement",
        "Network functions to put on the same server.",
        "Total capacity: the sum of normalized throughputs, at most the number of network functions.",
        "All placements are compared if there are few enough, otherwise a heuristic search finds a good one. Sets of "
        "three or more that were not measured are predicted from pairs, and marked; with `verify: 3` in the "
        "specification the best three placements are measured as they are before one is advised.",
        "It considers interference only: no traffic between network functions. The interval is that of measurements; "
        "the error of predictions is stated beside it, and is unknown where no three were measured together.",
    ),
)
NORMALIZED = Measure("normalized", "")
"""Throughput of a network function beside others over its throughput alone."""


def _measured(found: Interference) -> Iterator[MeasuredSubject]:
    """Yield a subject for each set of co-located network functions that each of them was measured in.

    The neighbours are part of the service's name: they decide what is compared with what.
    """
    for guarantee, rows in matrices(found):
        end = f", {WAYS[guarantee]}" if guarantee else ""
        for row in rows:
            low, high = (row.mean if each is None else each for each in (row.low, row.high))
            yield MeasuredSubject(
                (MeasuredValue(NORMALIZED, row.mean, low, high),),
                f"{row.target} beside {' and '.join(row.against)}{end}",
                Dimensions(1 + len(row.against), 1),
                str(found.spec.size),
                frame_text(found.spec.frame),
                "interference",
            )


def _title(found: Interference) -> str:
    spec = found.spec
    load = "" if spec.load_pps is None or spec.loads_pps else f", {rate(spec.load_pps)} each"
    return f"{spec.name}, {', '.join(frame.name for frame in spec.frames or (spec.frame,))}{load}"


_QUERIED = QueriedTables(
    {
        "interference_measurements": tables.MEASUREMENTS,
        "interference_matrix": tables.MATRIX,
        "interference_comparison": tables.COMPARISON,
        "interference_means": tables.MEANS,
        "interference_sweep": tables.SWEEP,
    },
    texts=(
        "frame",
        "target",
        "against",
        "guaranteed_resource",
        "network_function",
        "type",
        "kind",
        "stand_in_for",
    ),
    counts=(
        "samples",
        "turn",
        "repetition",
        "memory_bytes",
        "cache_misses",
        *(f"{what}_{end}_rank" for what in ("sensitivity", "aggressiveness") for end in ("first", "last")),
    ),
    flags=("guaranteed",),
)
STUDY = Study(
    order=50,
    pages=(PAGE,),
    kinds=(
        RecordKind(
            "interference",
            "Interference",
            lambda record: record.interference,
            _title,
            headline,
            lines=sentences,
            measures=(NORMALIZED,),
            measured=_measured,
            tables=tables.interference_tables,
            queried=_QUERIED,
        ),
    ),
    explanations={"Interference": EXPLANATIONS},
    preview=lambda path, keys: cost(load_interference(path, keys)),
)
