"""Records on disk and in short form: what is written is read back equal, what cannot be is one sentence."""

import base64
import hashlib
import json
import os
import resource
import signal
import zlib
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from csit_utils.dataset.items import ReadError
from csit_utils.dataset.load import parse_record
from csit_utils.dataset.testrows import packed_head
from resources.libraries.python.errors import ConfigError, CsitError, RunStopped
from resources.libraries.python.model.record import Record, packed_keys
from resources.libraries.python.model.request.cell import ServiceType
from resources.libraries.python.model.testbed.topology import World
from resources.libraries.python.recording import writer
from resources.libraries.python.recording.records import NotUnpacked, records_schema, unpack
from resources.libraries.python.studies.density.model import DensityRecord
from resources.libraries.python.studies.sweep.run import ProfileStore
from resources.libraries.python.whole_files import writing_whole
from tests.unit.csit_utils.builders import does_not_fit, mrr_result, result
from tests.unit.csit_utils.characterization_records import sized
from tests.unit.csit_utils.study_records import chain_studied, interfered
from tests.unit.recording.characterizations import SPEC, characterization

DENSITY = [
    result(ServiceType.CSC, 2, 2),
    result(ServiceType.VSC, 1, 1, simulated=True, oversubscribed=True, message='a "b" <c> ü'),
    mrr_result(ServiceType.CSP, 1, 3),
    does_not_fit(ServiceType.CSC, 8, 8),
]
RECORDS: list[Record] = [*DENSITY, characterization(), chain_studied()]
each_record = pytest.mark.parametrize("made", RECORDS, ids=lambda made: made.test_name)
BURSTS = SPEC.model_dump(mode="json") | {"rates": None}


def digest_of(made: Record) -> str:
    return hashlib.sha256(made.model_dump_json().encode()).hexdigest()


@each_record
def test_a_record_survives_the_disk_and_fits_the_schema(made: Record, tmp_path: Path) -> None:
    path = writer.write_record(made, tmp_path)
    assert path.name == f"{writer.safe_name(f'{made.file_prefix}-{made.test_name}')}.json"
    text = path.read_text(encoding="utf-8")
    assert parse_record(text, "x")[0] == made
    jsonschema.Draft202012Validator(records_schema(made.study)).validate(json.loads(text))
    assert not list(tmp_path.rglob("*.part"))


@each_record
def test_a_packed_record_comes_back_as_it_was_and_its_head_has_what_rows_need(made: Record) -> None:
    short = writer.pack(made)
    assert parse_record(short, "x") == parse_record(made.model_dump_json(), "x") == (made, digest_of(made))
    assert parse_record(short.encode(), "x")[0] == made
    data = json.loads(short)
    assert not packed_keys(type(made)) & data.keys()
    assert data["counted"] == json.loads(json.dumps(made.counted(digest_of(made))))
    if isinstance(made, DensityRecord):
        assert json.loads(msgspec.json.encode(packed_head(short).counted)) == data["counted"]
        assert (data["counted"]["trials"], data["counted"]["planned"]) == (len(made.trials), made.plan is not None)


def test_the_parts_of_a_study_are_packed_and_records_that_had_them_unpacked_are_still_read() -> None:
    made = chain_studied()
    assert len(writer.pack(made)) < len(made.model_dump_json()) / 3
    light = made.model_dump_json(exclude={"plan", "environment", "sweep", "sizing"})
    heavy = made.model_dump_json(include={"plan", "environment", "sweep", "sizing"})
    older = f'{light[:-1]},"packed":"{base64.b64encode(zlib.compress(heavy.encode())).decode()}"}}'
    assert parse_record(older, "x")[0] == made
    with pytest.raises(ReadError, match="its packed part is not that of a record"):
        parse_record(f'{writer.pack(made)[:-1]},"chain_study":null}}', "x")


def test_a_bomb_is_refused() -> None:
    bomb = base64.b64encode(zlib.compress(b"{" + b" " * 2_000_000 + b"}")).decode()
    with pytest.raises(NotUnpacked, match=r"more than 0\.2 MB, as in an archive bomb"):
        unpack(bomb)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"packed": "####"}, "damaged"),
        ({"packed": base64.b64encode(b"no zlib").decode()}, "damaged"),
        ({"packed": base64.b64encode(zlib.compress(b"{}" * 999)[:-6]).decode()}, "too early"),
        ({"trials": []}, "not that of a record"),
    ],
)
def test_damage_is_named_with_the_test(changed: dict[str, Any], reason: str) -> None:
    with pytest.raises(ReadError, match=f"the place: .*{reason}"):
        parse_record(json.dumps({**json.loads(SHORT), **changed}), "the place")


SHORT = writer.pack(DENSITY[0])


@pytest.mark.parametrize(
    ("text", "readable"),
    [
        (SHORT, True),
        (SHORT.replace('"packed":', '"packed": '), True),
        (SHORT.replace('"counted":', '"a\\"packed":"x","counted":'), True),
        (SHORT.replace('"packed":"', '"packed":"\\u0041'), True),
        (SHORT[:-1] + ',"later":"}"}', True),
        (SHORT[:-2] + "}", False),
        (SHORT[:-1], False),
        (SHORT[:-1] + "]", False),
        (SHORT + "}", False),
        (SHORT[:-2] + '\\"}', False),
        (SHORT.replace('"packed":"', '"packed":["'), False),
        (SHORT.replace('"packed":"', '"other":"'), False),
        (SHORT.replace('"message":""', '"message":"\ud800"'), False),
    ],
)
def test_passing_over_the_packed_part_reads_no_more_and_no_less_than_json_allows(text: str, readable: bool) -> None:
    if not readable:
        with pytest.raises(ReadError):
            packed_head(text)
        return
    found, expected = packed_head(text), packed_head(SHORT)
    names = set(found.__struct_fields__) - {"packed"}
    assert [getattr(found, name) for name in names] == [getattr(expected, name) for name in names]


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
        (interfered(), "interference.spec.load_pps", 1e13),
        (chain_studied(), "chain_study.spec.workloads.0.volume_bps", 1e18),
        (chain_studied(), "chain_study.spec.policies", ["a > b"] * 300),
        (sized(), "sizing.workload.repeat", 2000),
        (sized(), "sizing.workload.increase", 1e-9),
        (characterization(), "sweep.spec", {**BURSTS, "bursts": {"rate_pps": 1.0, "on_s": 5000, "off_s": 1}}),
    ],
)
def test_a_record_beyond_the_bounds_of_specifications_is_read(made: Record, path: str, value: object) -> None:
    data = json.loads(made.model_dump_json())
    part, key = _place(data, path)
    part[key] = value
    read = parse_record(json.dumps(data), "here")[0].model_dump(mode="json")
    part, key = _place(read, path)
    assert part[key].items() >= value.items() if isinstance(value, dict) else part[key] == value


@pytest.mark.parametrize(
    ("made", "path", "value"), [(characterization(), "sweep.points.1.output_pps", "many"), (DENSITY[0], "mood", "fine")]
)
def test_a_damaged_record_is_reported_with_the_path_inside(made: Record, path: str, value: str) -> None:
    data = json.loads(made.model_dump_json())
    part, key = _place(data, path)
    part[key] = value
    with pytest.raises(ReadError, match=rf"here: the record is not valid: {path}: "):
        parse_record(json.dumps(data), "here")


def test_a_full_disk_or_no_folder_is_reported_also_before_a_run(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(RunStopped, match="cannot write the result: File too large; fix that, then resume the run"):
            writer.write_record(DENSITY[0], tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list((tmp_path / "results").iterdir())
    with pytest.raises(CsitError, match=r"MB of disk space for results, 1000000000000\.0 MB needed"):
        writer.check_folder(tmp_path, 10**18)
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(CsitError, match="cannot write results"):
        writer.check_folder(tmp_path / "file" / "results", 1)
    folder = writer.write_tables("Firewall / 64B", {"S_statistics.csv": "rate_pps\n10\n"}, tmp_path)
    assert folder == tmp_path / "characterization" / "Firewall_64B"
    with pytest.raises(RunStopped, match="cannot write the result"):
        writer.write_tables("x", {"a.csv": ""}, tmp_path / "file")


def test_what_a_killed_run_was_writing_is_removed_and_nothing_else(tmp_path: Path) -> None:
    places = [tmp_path / "results", tmp_path / "characterization" / "a_sweep"]
    for place in places:
        place.mkdir(parents=True)
        (place / ".mine.part").touch()
        if (child := os.fork()) == 0:
            with writing_whole(place / "a.json"):
                os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(child, 0)
        assert len(list(place.iterdir())) == 2
    writer.remove_half_written(tmp_path)
    assert [[file.name for file in place.iterdir()] for place in places] == [[".mine.part"]] * 2


def test_space_is_reserved_but_not_in_the_file_of_another(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("kept", encoding="ascii")
    (tmp_path / ".reserve").symlink_to(victim)
    writer.Reserve(tmp_path).hold()
    assert victim.read_text(encoding="ascii") == "kept"
    assert (tmp_path / ".reserve").stat().st_size > 0


@given(st.lists(st.tuples(st.text(max_size=3), st.text(max_size=3)), max_size=20))
def test_no_two_tests_share_a_file_name_and_each_keeps_its_own(tests: list[tuple[str, str]]) -> None:
    ids = [("Mine.Firewall", "Firewall"), ("Yours.Firewall", "Firewall")]
    ids += [(f"{suite}.{test}", test) for suite, test in tests]
    names, again = writer.FileNames(), writer.FileNames()
    found = {test_id: names.of(test_id, test) for test_id, test in ids}
    assert (found["Mine.Firewall"], found["Yours.Firewall"]) == ("Firewall", "Yours.Firewall")
    assert len(set(found.values())) == len(found)
    assert all(name == writer.safe_name(name) for name in found.values())
    assert {test_id: again.of(test_id, test) for test_id, test in ids} == found


def test_profiles_are_found_by_name_and_frame_in_this_run_and_the_newest_of_earlier_ones(tmp_path: Path) -> None:
    for night in ("2026-01-03", "2026-01-02"):
        writer.write_record(characterization(started_at=f"{night}T00:00:00+00:00"), tmp_path / night)
    writer.write_record(result(ServiceType.CSC, 1, 1), tmp_path / "density")
    found = ProfileStore(World.LOCAL, "local", tmp_path).profile("firewall", "64B")
    assert found.notes == ("2026-01-03T00:00:00+00:00",)
    with pytest.raises(ConfigError, match="on testbed sim"):
        ProfileStore(World.SIM, "sim", tmp_path).profile("firewall", "64B")
    shelf = ProfileStore(World.LOCAL, "local")
    shelf.put(characterization("router"))
    assert shelf.profile("router", "64B").name == "router"
    for name, frame, available in (("router", "512B", "none"), ("nat", "64B", "router")):
        sentence = rf"no profile of '{name}' with {frame} frames on testbed local \(available: {available}\)"
        with pytest.raises(ConfigError, match=sentence):
            shelf.profile(name, frame)
