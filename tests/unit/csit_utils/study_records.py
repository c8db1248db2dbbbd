"""Records of studies of chains and of interference, analysed as real ones are."""

from itertools import permutations
from typing import Any

from resources.libraries.python.model.measurements.features import StateGraph
from resources.libraries.python.model.record import Record
from resources.libraries.python.studies.chains import model as of_chains
from resources.libraries.python.studies.chains.analysis.study import analyse as analyse_chains
from resources.libraries.python.studies.chains.model import ChainRun, ChainsRecord, ChainStudy, DroppedChains
from resources.libraries.python.studies.interference.analysis.study import advised, analyse
from resources.libraries.python.studies.interference.model import Interference, InterferenceRecord
from tests.unit.csit_utils.characterization_records import one_of_each, record, sized
from tests.unit.csit_utils.characterization_records import traced as traced_sizing
from tests.unit.csit_utils.outages import outage_record
from tests.unit.csit_utils.stateful_cells import stateful_record
from tests.unit.studies.chains import chain_runs
from tests.unit.studies.interference import measurements

VNFS = ("firewall", "nat", "ids", "proxy")
VOLUMES_BPS = (5e7, 1e8, 2e8)
FAULTY = chain_runs.chain("nat", "firewall")
LOSSY = chain_runs.chain("ids", "nat")
TARGETS = ("gateway", "monitor", "balancer")
ALONE_PPS = {"gateway": 9e4, "monitor": 6e4, "balancer": 8e4}


def traced(owner: str, idle: float) -> StateGraph:
    """A thread that wakes up, receives, sends, and sleeps for a share of the second; now and then something rare."""
    way = ("sched_switch:out:S", "sched_wakeup", "sched_switch:in", "netif_receive_skb", "net_dev_queue")
    seconds = (idle, 0.05, 0.01, (0.94 - idle) / 2, (0.94 - idle) / 2)
    usual = [(one, way[(at + 1) % len(way)], 700, seconds[at]) for at, one in enumerate(way)]
    rare = [(way[3], way[3], 12, 1e-4), (way[2], "softirq_entry:RCU", 1, 1e-6), ("softirq_entry:RCU", way[0], 1, 1e-6)]
    return chain_runs.graph(owner, *usual, *rare)


def chain_study() -> ChainStudy:
    """Chains of four VNFs, one of which is throttled in one order, and one chain loses half of what goes through it.

    The largest volume was traced, and one chain failed.
    """
    chains = [chain_runs.chain(*order) for length in (1, 2) for order in permutations(VNFS, length)]
    runs = [
        run.model_copy(
            update={"latency_s": 1e-4, "idle_latency_s": 5e-5}
            | ({"throughput_bps": (run.throughput_bps or 0.0) / 2, "loss_ratio": 0.5} if run.chain == LOSSY else {})
            | ({"graphs": tuple(map(_traced(run), run.chain.order))} if run.workload.volume_bps == 2e8 else {})
        )
        for run in chain_runs.noisy_runs(chains, VOLUMES_BPS, FAULTY, "nat")
    ]
    failed = chain_runs.run(chain_runs.chain("ids", "nat", "proxy"), 2e8, 0.0)
    unknown = dict.fromkeys(("offered_bps", "throughput_bps", "loss_ratio"))
    runs.append(failed.model_copy(update={"failed": "proxy did not start", **unknown}))
    spec = chain_runs.spec_of(VNFS, ("ids > proxy",), (1, 2), VOLUMES_BPS)
    found = analyse_chains(spec, runs)
    return ChainStudy(
        spec=spec,
        chains=len(chains) + 1,
        dropped=(DroppedChains(policy="ids > proxy", count=1, examples=(("proxy", "ids"),)),),
        runs=tuple(runs),
        statistics=found.statistics,
        suspects=found.suspects,
        costs=(of_chains.StepCost(step="analyse", cpu_s=2.0, lasted_s=2.5),),
        trace_source="traced are containers by 10 events",
        notes=found.notes,
    )


def _traced(run: ChainRun) -> Any:
    return lambda owner: traced(owner, 0.2 if run.chain == FAULTY and owner == "nat" else 0.7)


def chain_studied(study: ChainStudy | None = None, **parts: Any) -> ChainsRecord:
    """The record of a study of chains."""
    return record("chains", "Four Network Functions", chain_study=study or chain_study(), **parts)


def interference(**spec: Any) -> Interference:
    """Three network functions: the balancer does the others harm, the monitor suffers; once more with a guarantee."""
    beside: dict[measurements.Company, float] = {
        (target, (other,)): {"balancer": 0.6, "monitor": 0.8, "gateway": 0.95}[other] - 0.1 * (target == "monitor")
        for target in TARGETS
        for other in TARGETS
    }
    better = {pair: (1 + share) / 2 for pair, share in beside.items()}
    more: dict[str, Any] = {"response_s": 3e-4, "loss_ratio": 0.01, "cpu": 0.8, "memory_bytes": 2**24}
    found = [
        *measurements.measured(ALONE_PPS, beside, noise=0.02, **more),
        *measurements.measured(ALONE_PPS, better, noise=0.02, guaranteed=True, **more),
    ]
    timed = [each.model_copy(update={"turn": turn}) for turn, each in enumerate(found)]
    made = analyse(measurements.spec_of(*TARGETS, guarantee=True, **spec), timed, ("no counters of cache misses here",))
    return advised(made, ((), ()), TARGETS)


def interfered(found: Interference | None = None, **parts: Any) -> InterferenceRecord:
    """The record of a study of interference."""
    return record("interference", "Network Functions Side By Side", interference=found or interference(), **parts)


def one_of_every_kind() -> list[Record]:
    """Records of all studies; with two sizings and several sweeps, whose pages lay them side by side."""
    sizing = traced_sizing(sized()).model_copy(update={"test_name": "Traced", "test_id": "traced"})
    others = (outage_record(50), stateful_record(998), interfered(), chain_studied(chain_study()), sizing)
    return [*one_of_each(), *others]
