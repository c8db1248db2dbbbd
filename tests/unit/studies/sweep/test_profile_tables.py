"""Tables of a characterization as CSV, and S_statistics read back."""

import csv
import io
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.libraries.python.csv_tables import csv_text
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.studies.sweep.analysis.chain_prediction import MeasuredVnf, predict_rates
from resources.libraries.python.studies.sweep.analysis.profile import profile_of
from resources.libraries.python.studies.sweep.analysis.tables import all_samples, read_statistics, statistics, tables_of
from resources.libraries.python.studies.sweep.model import Sweep, SweepPoint, SweepRecord, SweepSample
from tests.unit.examples import share
from tests.unit.studies.sweep.synthetic_sweeps import ADVA, known_profile, printed_sweep

FIELDS = sorted(SweepPoint.model_fields.keys() - {"cpu", "memory_mib"})
HEADS = "rate_pps,samples,input_pps,output_pps,input_gbps,output_gbps"


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_a_row_per_second_with_the_cpu_of_every_vnf_and_vcpu() -> None:
    known = SweepSample(
        rate_pps=1000, second=0, input_pps=999, output_pps=989, loss_ratio=0.01, delay_s=2e-4,
        cpu={"router": (0.5, 0.25), "fire, wall": (1.0,)},
    )  # fmt: skip
    dark = SweepSample(rate_pps=1000, second=1, input_pps=0, output_pps=0, loss_ratio=None, delay_s=None)
    first, second = rows_of(csv_text(all_samples([known, dark])))
    assert list(first)[6:] == [
        "router_cpu_percent", "router_vcpu1_percent", "router_vcpu2_percent", "fire, wall_cpu_percent",
        "fire, wall_vcpu1_percent",
    ]  # fmt: skip
    assert (first["loss_percent"], first["delay_ms"], first["router_cpu_percent"]) == ("1.0", "0.2", "75.0")
    assert {second[column] for column in list(second)[4:]} == {""}


shares, amounts = st.floats(0, 1), st.floats(1, 1e8)
names = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zs", "Zl", "Zp")), min_size=1, max_size=8)


@st.composite
def any_points(draw: st.DrawFn) -> tuple[SweepPoint, ...]:
    threads = draw(st.dictionaries(names, st.integers(1, 3), max_size=3))
    return tuple(
        SweepPoint(
            rate_pps=draw(amounts), samples=draw(st.integers(1, 100)), input_pps=draw(amounts),
            sender_pps=draw(st.none() | amounts), output_pps=draw(amounts), input_bps=draw(amounts),
            output_bps=draw(amounts), loss_ratio=draw(st.none() | shares), delay_s=draw(st.none() | shares),
            cpu={name: tuple(draw(shares) for _ in range(count)) for name, count in threads.items()},
            memory_mib={name: draw(amounts) for name in threads}, available_mib=draw(st.none() | amounts),
            flagged=draw(st.none() | st.sampled_from(["off, by 7 %", 'so "called"'])),
        )
        for _ in range(draw(st.integers(1, 4)))
    )  # fmt: skip


@settings(deadline=None, max_examples=share(60))
@given(any_points())
def test_statistics_are_read_back_as_they_were(points: tuple[SweepPoint, ...]) -> None:
    found = read_statistics(csv_text(statistics(points)), "x.csv")
    assert [point.cpu.keys() for point in found] == [point.cpu.keys() for point in points]
    for one, other in zip(found, points, strict=True):
        for field in FIELDS:
            value = getattr(other, field)
            same = pytest.approx(value, rel=1e-12) if isinstance(value, float) else value
            assert getattr(one, field) == same, field
        assert all(one.cpu[name] == pytest.approx(other.cpu[name], rel=1e-12) for name in one.cpu)
        assert one.memory_mib == pytest.approx(other.memory_mib, rel=1e-12)


def test_a_csv_of_ones_own_needs_four_columns_only() -> None:
    text = (
        "\ufeffinput_pps, output_pps,input_gbps,output_gbps,nat_cpu_percent,remark\r\n1000,990,0.1,0.099,37,x\r\n\r\n"
    )
    (point,) = read_statistics(text, "own.csv")
    assert (point.rate_pps, point.samples, point.sender_pps, point.loss_ratio) == (1000, 1, None, None)
    assert point.cpu == {"nat": (0.37,)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADS.replace("output_gbps", "throughput"), ": .* not here: output_gbps"),
        (HEADS + "\n", ": no points"),
        (HEADS + "\n1,1,1,1,1\n", ", line 2: has 5 fields"),
        (HEADS + "\n1,1,1,1,much,1\n", ", line 2: input_gbps is 'much'"),
        (HEADS + "\n1,1,1,1,1,1\n1,1,1,1,-1,1\n", ", line 3: input_gbps is -1"),
        (HEADS + "\n1,1,1,1,nan,1\n", ", line 2: input_gbps is nan"),
        (HEADS + "\n1,1,,1,1,1\n", ", line 2: input_pps is empty"),
        (HEADS + ",loss_percent\n1,1,1,1,1,1,101\n", ", line 2: loss_percent is 101"),
        (HEADS + ",input_pps\n1,1,1,1,1,1,1\n", ": .* input_pps"),
        ("x" * 200_000, ", line 1: not CSV"),
    ],
)
def test_a_wrong_csv_gets_one_sentence(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=f"^x.csv{message}"):
        read_statistics(text, "x.csv")


def test_a_record_has_the_tables_that_it_has_something_for() -> None:
    nothing: dict[str, Any] = {"sweep": None, "profile": None, "predictions": ()}
    assert tables_of(SweepRecord.model_construct(**nothing)) == ()
    parts = [MeasuredVnf(known_profile(name, capacity)) for name, capacity in (("a", 1.0), ("b", 2.0))]
    found, points = predict_rates("chain", parts, [0.5, 1.5], "hungriest"), printed_sweep(ADVA, 0.002, 0)
    something = {**nothing, "profile": profile_of("router", points, {"router": 1}), "predictions": (found,)}
    tables = {name: rows_of(csv_text(rows)) for name, rows in tables_of(SweepRecord.model_construct(**something))}
    assert list(tables) == ["coefficients", "predictions"]
    columns = ("parts", "rate_gbps", "throughput_predicted_gbps", "throughput_measured_gbps")
    predictions = [tuple(row[name] for name in columns) for row in tables["predictions"]]
    assert predictions == [("a+b", "0.5", "0.5", ""), ("a+b", "1.5", "1.0", "")]
    assert len(tables["coefficients"]) == 2 + 2 + 3 + 2 + 2 + 2
    assert {row["saturates_first"] for row in tables["coefficients"]} == {"router"}
    (loss,) = (row for row in tables["coefficients"] if (row["metric"], row["coefficient"]) == ("loss", "d"))
    assert (loss["region"], loss["formula"]) == ("sat", "100*(1-d/(r-g))")
    assert float(loss["value"]) == pytest.approx(1.722, rel=0.05) and float(loss["relative_error"]) < 0.01
    swept = {**nothing, "sweep": Sweep.model_construct(samples=(), points=points)}  # type: ignore[call-arg]
    assert tables_of(SweepRecord.model_construct(**swept)) == (("S_statistics", statistics(points)),)
