"""The plan as JSON: one object per cell, one for the whole. The keys are described in docs/how-to/plan-a-matrix.md."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from csit_utils.studies.density.plan_time import Times
from resources.libraries.python.model.topology import Topology
from resources.libraries.python.planning.queue_balance import Spread
from resources.libraries.python.planning.rss_spread import spread_warnings
from resources.libraries.python.studies.density.planning.matrix import Candidate, core_usage


def cell_object(row: Candidate) -> dict[str, Any]:
    """One cell."""
    cell, cores, even = row.cell, row.cores, row.balance
    sizes = [size.cores for size in cell.nf_sizes]
    return {
        "object": "cell",
        "service_type": cell.service_type.value,
        **cell.dimensions.columns,
        "nf_dtc": sizes[0] if len(sizes) == 1 else sizes,
        "nf_kinds": list(cell.nf_kinds),
        "vs_dtc": cell.vs_dtc,
        "fits": row.fits,
        "runs": row.runs,
        "oversubscribed": row.oversubscribed,
        "reason": row.reason,
        "reasons": [reason.model_dump(mode="json") for reason in row.reasons],
        "slide_cores": core_usage(cell),
        "cores_needed": cores.cores_needed if cores else None,
        "cores_there": cores.cores_there if cores else None,
        "cores": [thread.model_dump(mode="json") for thread in cores.threads] if cores else None,
        "queues": [
            {"port": port.name, "owner": port.owner, "data_threads": list(port.queues), "cpus": list(port.cpus)}
            for port in row.ports
        ],
        "queue_warnings": list(spread_warnings(row.ports)),
        "balance": None
        if even is None
        else {
            "even": even.even,
            "vswitch": _spread(even.vswitch),
            "nfs": {size: _spread(spread) for size, spread in even.nfs},
            "cores_with_siblings_of_two_nfs": even.sibling_nfs,
            "data_threads_per_cpu": [even.least_threads, even.most_threads],
            "uneven": list(even.uneven()),
            "siblings": list(even.siblings()),
        },
    }


def _spread(spread: Spread) -> dict[str, int]:
    return {"queues": spread.queues, "threads": spread.threads, "least": spread.least, "most": spread.most}


def summary_object(topology: Topology, rows: Sequence[Candidate], times: Times) -> dict[str, Any]:
    """The whole selection."""
    return {
        "object": "summary",
        "testbed": topology.metadata.name,
        "world": topology.world.value,
        "cells": len(rows),
        "cells_fit": sum(row.fits for row in rows),
        "cells_oversubscribed": sum(row.oversubscribed for row in rows),
        "cells_refused": sum(not row.runs for row in rows),
        "tests": times.tests,
        "profile": times.profile,
        "seconds": times.seconds,
        "seconds_are_virtual": times.simulated,
        "suites": [asdict(suite) for suite in times.suites],
    }
