"""Records of characterizations: written, packed, found again; profiles that later tests use."""

import base64
import json
import zlib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from csit_utils.dataset.items import ReadError
from csit_utils.dataset.load import parse_record
from resources.libraries.python.errors import ConfigError, RunStopped
from resources.libraries.python.model.record import Record, packed_keys
from resources.libraries.python.model.request.cell import ServiceType
from resources.libraries.python.model.testbed.topology import World
from resources.libraries.python.recording.records import records_schema
from resources.libraries.python.recording.writer import pack, write_record, write_tables
from resources.libraries.python.studies.sweep.model.record import SweepRecord
from resources.libraries.python.studies.sweep.run import ProfileStore
from tests.unit.csit_utils import builders
from tests.unit.csit_utils.characterization_records import sized
from tests.unit.csit_utils.study_records import chain_studied, interfered
from tests.unit.recording.characterizations import SPEC, characterization

BURSTS = SPEC.model_dump(mode="json") | {"rates": None}


def test_a_record_survives_the_disk_and_fits_the_schema(tmp_path: Path) -> None:
    made = characterization()
    path = write_record(made, tmp_path)
    assert path.name == "sweep-firewall.json"
    text = path.read_text(encoding="utf-8")
    assert parse_record(text, "x")[0] == made
    jsonschema.Draft202012Validator(records_schema("sweep")).validate(json.loads(text))


def test_a_packed_record_comes_back_as_it_was() -> None:
    made = characterization()
    short = pack(made)
    assert not packed_keys(SweepRecord) & json.loads(short).keys()
    assert parse_record(short, "x")[0] == parse_record(short.encode(), "x")[0] == made


def test_the_parts_of_a_study_are_packed_and_records_that_had_them_unpacked_are_still_read() -> None:
    made = chain_studied()
    short = pack(made)
    assert len(short) < len(made.model_dump_json()) / 3
    assert parse_record(short, "x")[0] == made
    light = made.model_dump_json(exclude={"plan", "environment", "sweep", "sizing"})
    heavy = made.model_dump_json(include={"plan", "environment", "sweep", "sizing"})
    older = f'{light[:-1]},"packed":"{base64.b64encode(zlib.compress(heavy.encode())).decode()}"}}'
    assert parse_record(older, "x")[0] == made
    both = f'{short[:-1]},"chain_study":null}}'
    with pytest.raises(ReadError, match="its packed part is not that of a record"):
        parse_record(both, "x")


def _place(record: dict[str, Any], path: str) -> tuple[Any, int | str]:
    """The part of a record that has the last key of a path, and that key."""
    *above, last = (int(key) if key.isdecimal() else key for key in path.split("."))
    part: Any = record
    for key in above:
        part = part[key]
    return part, last


@pytest.mark.parametrize(
    ("made", "path", "value"),
    [
        (interfered(), "interference.spec.repetitions", 10**6),
        (interfered(), "interference.spec.together", 100),
        (interfered(), "interference.spec.duration_s", 1e6),
        (interfered(), "interference.spec.load_pps", 1e13),
        (chain_studied(), "chain_study.spec.duration_s", 7200),
        (chain_studied(), "chain_study.spec.workloads.0.volume_bps", 1e18),
        (chain_studied(), "chain_study.spec.policies", ["a > b"] * 300),
        (sized(), "sizing.workload.repeat", 2000),
        (sized(), "sizing.workload.duration_s", 1e6),
        (sized(), "sizing.workload.increase", 1e-9),
        (characterization(), "sweep.spec", {**BURSTS, "bursts": {"rate_pps": 1.0, "on_s": 5000, "off_s": 1}}),
    ],
)  # fmt: skip
def test_a_record_beyond_the_bounds_of_specifications_is_read(made: Record, path: str, value: object) -> None:
    data = json.loads(made.model_dump_json())
    part, key = _place(data, path)
    part[key] = value
    read = parse_record(json.dumps(data), "here")[0].model_dump(mode="json")
    part, key = _place(read, path)
    assert part[key].items() >= value.items() if isinstance(value, dict) else part[key] == value


def test_a_damaged_record_is_reported_with_the_path_inside() -> None:
    data = json.loads(characterization().model_dump_json())
    data["sweep"]["points"][1]["output_pps"] = "many"
    with pytest.raises(ReadError, match=r"here: the record is not valid: sweep\.points\.1\.output_pps: "):
        parse_record(json.dumps(data), "here")


def test_tables_are_files_below_the_tests_name(tmp_path: Path) -> None:
    folder = write_tables("Firewall / 64B", {"S_statistics.csv": "rate_pps\n10\n"}, tmp_path)
    assert folder == tmp_path / "characterization" / "Firewall_64B"
    assert (folder / "S_statistics.csv").read_bytes() == b"rate_pps\n10\n"
    (tmp_path / "full").write_text("", encoding="utf-8")
    with pytest.raises(RunStopped, match="cannot write the result"):
        write_tables("x", {"a.csv": ""}, tmp_path / "full")


def test_profiles_of_this_run_are_found_by_name_and_frame() -> None:
    shelf = ProfileStore(World.LOCAL, "local")
    shelf.put(characterization("router"))
    assert shelf.profile("router", "64B").name == "router"
    with pytest.raises(
        ConfigError, match=r"no profile of 'router' with 512B frames on testbed local \(available: none\)"
    ):
        shelf.profile("router", "512B")
    with pytest.raises(
        ConfigError, match=r"no profile of 'nat' with 64B frames on testbed local \(available: router\)"
    ):
        shelf.profile("nat", "64B")


def test_of_earlier_results_the_newest_counts_and_others_are_passed_over(tmp_path: Path) -> None:
    for night in ("2026-01-03", "2026-01-02"):
        write_record(characterization(started_at=f"{night}T00:00:00+00:00"), tmp_path / night)
    write_record(builders.result(ServiceType.CSC, 1, 1), tmp_path / "density")
    assert ProfileStore(World.LOCAL, "local", tmp_path).profile("firewall", "64B").notes == (
        "2026-01-03T00:00:00+00:00",
    )
    with pytest.raises(ConfigError, match="on testbed sim"):
        ProfileStore(World.SIM, "sim", tmp_path).profile("firewall", "64B")
