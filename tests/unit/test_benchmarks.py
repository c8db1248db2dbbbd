"""`./csit bench`: what it runs, and how it reports what it cannot run; figures of benchmarks without a machine."""

import importlib
import inspect
import json
import sys
from math import exp
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.paths import PROJECT
from tests.benchmarks import __main__ as bench
from tests.benchmarks.overhead import trial_overhead
from tests.benchmarks.watching import BLOCKS, costs, orders


def test_what_cannot_run_here_is_skipped_with_its_reason_and_the_rest_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    figures = {"ours": 2.0, "peer": 1.0, "ratio": 2.0, "unit": "s", "note": "works"}

    def impossible() -> None:
        raise Unsupported("needs trafgen")

    module = SimpleNamespace(fine=lambda: figures, impossible=impossible)
    monkeypatch.setitem(sys.modules, "tests.benchmarks.of_this_test", module)
    entries = {name: bench.BenchmarkEntry("of_this_test", name) for name in vars(module)}
    missing = bench.BenchmarkEntry("no_such_module", traffic=True)
    monkeypatch.setattr(bench, "BENCHMARKS", {"missing": missing, **entries})
    done = CliRunner().invoke(bench.app, ("--format", "json", "--no-traffic"))
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {"name": "fine", **figures},
        {"name": "impossible", "skipped": "needs trafgen"},
    ]
    assert done.exit_code == 0
    assert CliRunner().invoke(bench.app, ("--no-traffic", "--no-skips")).exit_code == 1


@pytest.mark.parametrize("name", bench.BENCHMARKS)
def test_every_benchmark_takes_what_makes_it_quick(name: str) -> None:
    entry = bench.BENCHMARKS[name]
    module = importlib.import_module(f"tests.benchmarks.{entry.module}")
    inspect.signature(getattr(module, entry.function)).bind(**entry.quick)


def test_overhead_of_a_trial_is_that_of_the_simulated_generator() -> None:
    """The search has trials that end early."""
    topology = load_topology(PROJECT / "topologies" / "sim.yaml")
    overhead_s = (topology.simulation or {}).get("overhead_s", 0.5)
    assert trial_overhead(topology, 0.015, most_s=10.0)["ours"] == pytest.approx(overhead_s)


def test_costs_are_found_in_spite_of_a_drift_and_of_a_disturbed_round() -> None:
    taken = {"nothing": 0.0, "nothing again": 0.0, "sampler": 0.04, "tracer": 0.12, "both": 0.16, "stacks": 0.08}
    noise = np.random.default_rng(1)
    rounds = [
        {
            name: 3e5 * exp(-taken[name] - 0.001 * (8 * number + place) + noise.normal(0, 1e-3))
            for place, name in enumerate(order)
        }
        for number, order in enumerate(orders(tuple(BLOCKS), 12))
    ]
    rounds[3]["tracer"] *= 0.5
    for name, found in costs(rounds).items():
        assert found.middle == pytest.approx(taken[name] / 20, abs=2e-4)
        assert found.interval and found.interval[0] <= found.middle <= found.interval[1]
