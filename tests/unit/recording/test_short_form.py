"""The short form of a record loses nothing, tells rows what they need, and cannot be used to fill memory."""

import base64
import hashlib
import json
import zlib

import msgspec
import pytest

from csit_utils.dataset.items import ReadError
from csit_utils.dataset.load import parse_record
from csit_utils.dataset.testrows import packed_head
from resources.libraries.python.model.record import packed_keys
from resources.libraries.python.model.request.cell import ServiceType
from resources.libraries.python.recording.records import NotUnpacked, unpack
from resources.libraries.python.recording.writer import pack
from resources.libraries.python.studies.density.model.record import DensityRecord
from tests.unit.csit_utils.builders import does_not_fit, mrr_result, result

RESULTS = [
    result(ServiceType.CSC, 2, 2),
    result(ServiceType.VSC, 1, 1, simulated=True, oversubscribed=True, message='a "b" <c> ü'),
    mrr_result(ServiceType.CSP, 1, 3),
    does_not_fit(ServiceType.CSC, 8, 8),
]


def digest_of(made: DensityRecord) -> str:
    return hashlib.sha256(made.model_dump_json().encode()).hexdigest()


@pytest.mark.parametrize("made", RESULTS, ids=lambda made: made.test_name)
def test_a_record_comes_back_as_it_was(made: DensityRecord) -> None:
    assert parse_record(pack(made), "x") == (made, digest_of(made))
    assert parse_record(pack(made).encode(), "x")[0] == made
    assert parse_record(made.model_dump_json(), "x") == (made, digest_of(made))


@pytest.mark.parametrize("made", RESULTS, ids=lambda made: made.test_name)
def test_the_head_lists_what_is_packed(made: DensityRecord) -> None:
    data = json.loads(pack(made))
    assert not packed_keys(DensityRecord) & data.keys()
    assert data["counted"] == json.loads(json.dumps(made.counted(digest_of(made))))
    assert json.loads(msgspec.json.encode(packed_head(pack(made)).counted)) == data["counted"]
    assert (data["counted"]["trials"], data["counted"]["planned"]) == (len(made.trials), made.plan is not None)


def test_it_is_much_shorter() -> None:
    made = result(ServiceType.CSC, 8, 2, histograms=False)
    assert len(pack(made)) < len(made.model_dump_json()) / 2


def test_a_bomb_is_refused() -> None:
    bomb = base64.b64encode(zlib.compress(b"{" + b" " * 2_000_000 + b"}")).decode()
    with pytest.raises(NotUnpacked, match=r"more than 0\.2 MB, as in an archive bomb"):
        unpack(bomb)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("####", "damaged"),
        (base64.b64encode(b"no zlib").decode(), "damaged"),
        (base64.b64encode(zlib.compress(b"{}" * 999)[:-6]).decode(), "too early"),
    ],
)
def test_damage_is_named_with_the_test(text: str, reason: str) -> None:
    data = {**json.loads(pack(RESULTS[0])), "packed": text}
    with pytest.raises(ReadError, match=f"the place: .*{reason}"):
        parse_record(json.dumps(data), "the place")


def test_a_key_in_both_parts_is_refused() -> None:
    data = {**json.loads(pack(RESULTS[0])), "trials": []}
    with pytest.raises(ReadError, match="not that of a record"):
        parse_record(json.dumps(data), "x")


SHORT = pack(RESULTS[0])


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
