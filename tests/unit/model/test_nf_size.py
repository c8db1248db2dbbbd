"""Sizes of NFs: half a core or any number of whole ones, equal to the text that says it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from resources.libraries.python.model.bounds import MAX_CORES
from resources.libraries.python.model.request.nf_size import NfSize

SIZES: TypeAdapter[tuple[NfSize, ...]] = TypeAdapter(tuple[NfSize, ...])


@given(st.integers(1, MAX_CORES))
def test_a_whole_number_of_cores_is_a_size_in_files_and_records(cores: int) -> None:
    (size,) = SIZES.validate_json(f'["{cores}c"]')
    assert (size.cores, size.whole_cores, size.is_half) == (cores, cores, False)
    assert size == NfSize.of(cores) == f"{cores}c"
    assert SIZES.dump_json((size,)) == json.dumps([size]).encode() == f'["{cores}c"]'.encode()


def test_half_a_core_is_a_sibling_or_half_of_the_time() -> None:
    half = NfSize("0.5c")
    assert (half.cores, half.whole_cores, half.is_half) == (0.5, 0, True)
    assert half == NfSize.of(0.5) == NfSize.HALF
    shared = NfSize("0.5c-shared")
    assert (shared.cores, shared.whole_cores, shared.is_half, shared.is_shared) == (0.5, 0, False, True)


@pytest.mark.parametrize(
    "text", ["0c", "1.5c", "0.25c", "1", "c", "", "01c", "-1c", "257c", "1000c", "1c-shared", "0.5c-", "1C", "\uff11c"]
)
def test_all_else_is_refused_with_what_there_is(text: str) -> None:
    with pytest.raises(ValidationError, match=f"no NF size '{text}'; there are 0.5c, 1c, 2c and so on to 256c"):
        SIZES.validate_python([text])


@pytest.mark.parametrize("value", [1, 0.5, None, ["1c"]])
def test_a_number_without_its_unit_is_no_size(value: object) -> None:
    with pytest.raises(ValidationError, match="valid string"):
        SIZES.validate_python([value])


def test_the_schema_has_the_form_of_a_size() -> None:
    assert SIZES.json_schema()["items"] == {"type": "string", "pattern": r"^((0\.5|[1-9][0-9]{0,2})c|0\.5c-shared)$"}
