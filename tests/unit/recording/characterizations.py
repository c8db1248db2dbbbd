"""Records of sweeps."""

from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.testbed.topology import World
from resources.libraries.python.studies.sweep import model
from tests.builders import cell_of
from tests.unit.csit_utils.builders import B64, ENVIRONMENT

SPEC = model.SweepSpec(rates=model.Rates(start_pps=1e4, stop_pps=2e4, step_pps=1e4), duration_s=2, frame=B64)
USED = {"nf-1-1": (0.2,)}


def sweep(name: str = "firewall") -> model.Sweep:
    """Two loads of two seconds each."""
    loads = [dict.fromkeys(("rate_pps", "input_pps", "output_pps"), rate_pps) for rate_pps in (1e4, 2e4)]
    return model.Sweep(
        name=name,
        cell=cell_of("CSP", nf_kinds=(NfKind("linux_firewall"),)),
        spec=SPEC,
        vnfs=(model.Vnf(name="nf-1-1", kind=NfKind("linux_firewall"), vcpus=1, shares_cpus_with=("vswitch",)),),
        samples=tuple(
            model.SweepSample(**at, second=second, loss_ratio=0.0, delay_s=5e-5, cpu=USED, busy={"nf-1-1": (0.4,)})
            for at in loads
            for second in range(2)
        ),
        points=tuple(
            model.SweepPoint(
                **at, samples=2, sender_pps=None, input_bps=at["rate_pps"] * 512, output_bps=at["rate_pps"] * 512,
                loss_ratio=0.0, delay_s=5e-5, cpu=USED,
            )
            for at in loads
        ),
    )  # fmt: skip


def characterization(
    name: str = "firewall", *, started_at: str = "2026-01-01T00:00:00+00:00", passed: bool = True
) -> model.SweepRecord:
    """The record of a sweep that was profiled."""
    return model.SweepRecord(
        pattern="sweep", test_id=f"Characterization.Sweep.{name}", test_name=name, tags=("SWEEP",),
        started_at=started_at, finished_at="2026-01-01T00:01:00+00:00", passed=passed,
        message="" if passed else "the service fell over", world=World.LOCAL, simulated=False, testbed="local",
        environment=ENVIRONMENT, drivers={"generator": "auto"}, sweep=sweep(name),
        profile=model.Profile(name=name, break_point=None, metrics=(), notes=(started_at,)),
    )  # fmt: skip
