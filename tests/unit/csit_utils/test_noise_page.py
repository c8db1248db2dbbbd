"""The noise floor on the page of a test, and in the doctor's report."""

import pytest

from csit_utils.report.details.noise import noise_figure, noise_floor
from csit_utils.report.site import render
from csit_utils.studies.registry import studies
from resources.libraries.python.model.core_map import ThreadRole
from resources.libraries.python.model.record import Record
from resources.libraries.python.testbed.node.checks import processors as noise_check
from tests.builders import SIM, cpu_noise, plan_of
from tests.unit.csit_utils.characterization_records import one_of_each, record
from tests.unit.csit_utils.characterized_pages import shown, words
from tests.unit.csit_utils.study_records import chain_studied, interfered


def test_the_table_has_the_cpus_of_the_test_the_noisiest_first() -> None:
    plan = plan_of(SIM, "CSC", cores=SIM.dut.layout)
    used = sorted(each.cpu for each in plan.cores.threads if each.role is ThreadRole.DATA)
    rows = [*(cpu_noise(cpu, 5_000, 3_000 * (cpu + 1)) for cpu in used), cpu_noise(99, 10**9)]
    rows[0] = rows[0].model_copy(update={"interrupts": {"Local timer interrupts": 9, "eth0<b>": 2}, "stolen_s": 0.01})
    lines = noise_floor(plan, rows)
    assert [line.cpu for line in lines] == [str(cpu) for cpu in reversed(used)]
    last = lines[-1]
    assert last.causes == "9 x Local timer interrupts; 2 x eth0<b>; 0.01 s taken by the hypervisor"
    assert last.owners and last.limit_pps and round(last.limit_pps) == round(256e9 / last.longest_ns)
    assert [line.owners for line in noise_floor(None, rows)] == [""] * len(rows), (
        "without one plan all that were observed"
    )


NOISE = (cpu_noise(3, 57_000), cpu_noise(4, 9_000))


RECORDS = [
    *one_of_each(noise=NOISE)[3:],
    interfered(noise=NOISE),
    chain_studied(noise=NOISE),
    record("outage", "Routers", message="no", passed=False, noise=NOISE),
]


@pytest.mark.parametrize("noisy", RECORDS, ids=lambda noisy: noisy.kind)
def test_the_head_of_each_record_of_a_study_has_the_table(noisy: Record) -> None:
    quiet = noisy.model_copy(update={"noise": ()})
    texts = [
        " ".join(words(made) for study in studies() for page in study.pages if (made := render(page, shown(each))))
        for each in (noisy, quiet)
    ]
    assert "Noise floor: the longest interruption of an idle data CPU was 57" in texts[0]
    assert "Noise floor:" not in texts[1]


def test_the_figure_counts_interruptions_as_long_or_longer() -> None:
    plan = plan_of(SIM, "CSC", cores=SIM.dut.layout)
    cpu = next(each.cpu for each in plan.cores.threads if each.role is ThreadRole.DATA)
    figure = noise_figure("n", "t", plan, [cpu_noise(cpu, 3_000, 3_000, 50_000, observed_s=0.5)], simulated=False)
    (trace,) = figure.variants[""]["data"]
    assert trace["x"][-1] == 50.0 and trace["y"] == [6.0, 2.0]
    assert noise_figure("n", "t", plan, [cpu_noise(cpu)], simulated=False) is None


def test_the_doctor_warns_of_long_and_of_frequent_interruptions() -> None:
    assert not list(noise_check.check_cpu_noise("nodes.DUT1", []))
    (fine,) = noise_check.check_cpu_noise("nodes.DUT1", [cpu_noise(1, 9_000), cpu_noise(2)])
    assert str(fine).startswith("nodes.DUT1: noise: noise floor of 2 data CPUs: longest interruption 9.00 µs on CPU 1")
    (long,) = noise_check.check_cpu_noise("nodes.DUT1", [cpu_noise(1, 2_000_000)])
    assert long.level == "warning" and "at more than 128 kpps a receive queue of 256 frames overflows" in long.what
    (often,) = noise_check.check_cpu_noise("nodes.DUT1", [cpu_noise(1, *[60_000] * 100)])
    assert often.level == "warning" and "(more than 0.5 %)" in often.what
