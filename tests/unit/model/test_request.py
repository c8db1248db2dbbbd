"""Words of a request: frame sizes, sizes and kinds of NFs, nodes that instances share, variables of suites."""

import json
import pickle
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from resources.libraries.python import driver_registry
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.bounds import ASKED, MAX_CORES
from resources.libraries.python.model.request.frames import FrameByName, frame
from resources.libraries.python.model.request.kinds import NfKind, are_vms
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.model.request.variables import (
    AT_RATE,
    BACK_TO_BACK,
    CELLS,
    ENERGY,
    LOSSES,
    NOISE_FLOOR,
    PREDICT,
    SET,
    STACKS,
    STOP_LOSS,
    SWEEP_WIDTH,
    Variable,
    texts,
)


@pytest.mark.parametrize("name", ["64B", "1300b", "9018B", "0768B"])
def test_any_size_has_a_frame_and_names_of_the_file_are_its_mixes(name: str) -> None:
    assert frame("imix") == frame("IMIX") and frame("IMIX").mean_bytes == pytest.approx(353.83, abs=0.01)
    made = frame(name)
    assert made.mean_bytes == made.largest_bytes == int(name[:-1])
    assert made.name == f"{made.largest_bytes}B"


@pytest.mark.parametrize("name", ["63B", "9019B", "B", "63", "9019", "-64B", "64.5B", "", "JUMBO", "1e3B"])
def test_what_is_no_frame_is_refused_with_what_there_is(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"no frame size '{name}'; frames.yaml has 64B, .* any from 64B to 9018B"):
        frame(name)


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        (512, "no frame size '512'; did you mean 512B? "),
        (True, "expected a frame size, such as 512B or IMIX"),
        ({"name": "512B"}, "expected a frame size, such as 512B or IMIX"),
    ],
)
def test_what_names_no_frame_in_a_file_is_refused_with_an_example(written: object, sentence: str) -> None:
    sizes: TypeAdapter[object] = TypeAdapter(FrameByName)
    with pytest.raises(ValidationError) as refused:
        sizes.validate_python(written, context=ASKED)
    assert refused.value.errors()[0]["msg"].startswith(f"Value error, {sentence}")
    assert sizes.validate_python("512B", context=ASKED) == sizes.validate_python(frame("512B")) == frame("512B")
    with pytest.raises(ValidationError):  # a record: a name may be that of any file
        sizes.validate_python("512B")


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


KINDS = TypeAdapter(NfKind)


@pytest.mark.parametrize("kind", [NfKind(name) for name in driver_registry.functions()])
def test_a_kind_is_a_word_in_files_and_keeps_its_meaning(kind: NfKind) -> None:
    read = KINDS.validate_json(KINDS.dump_json(kind))
    assert read == kind and type(read) is NfKind and read.driver.name == kind
    assert json.dumps(kind) == f'"{kind}"'
    assert type(pickle.loads(pickle.dumps(kind))) is NfKind  # noqa: S301 - made on the line itself
    assert kind.is_vm == (kind.in_guest is not None or kind in {"qemu", "qemu_vpp"})
    assert are_vms([kind]) is kind.is_vm


EDGES = [
    (LOSSES, {"": None, "0.1": 0.1, "60": 60.0}, ["0", "61", "nan", "inf", "-1", "on"]),
    (ENERGY, {"": None, "1": 1.0, "600": 600.0}, ["0.5", "601", "nan"]),
    (STACKS, {"": None, "1": 1.0, "600": 600.0}, ["0.5", "601", "1h"]),
    (BACK_TO_BACK, {"": None, "1": 1, "1000": 1000}, ["0", "1001", "1.5", "many", "9" * 5000, "٣"]),
    (AT_RATE, {"": None, "0.5": 0.5, "1e9": 1e9}, ["0", "-1", "2e9", "fast"]),
    (NOISE_FLOOR, {"": 0.9, "0": 0.0, "0.1": 0.1, "10": 10.0}, ["0.05", "11", "nan", "-1", "long"]),
    (PREDICT, {"": True, "on": True, "off": False}, ["maybe"]),
    (STOP_LOSS, {"": None, "0": 0.0, "0.5": 0.5}, ["1", "20 %", "-0.1"]),
    (SWEEP_WIDTH, {"": 0.02, "0.5": 0.005, "off": None}, ["0", "narrow", "nan", "101"]),
    (SET, {"": {}, "a=1; b.0.c=[x, y=2];": {"a": "1", "b.0.c": "[x, y=2]"}}, ["a", "=1", "a=1;b"]),
]


@pytest.mark.parametrize(("variable", "right", "wrong"), EDGES, ids=lambda each: getattr(each, "name", ""))
def test_a_variable_has_its_values_and_no_others(
    variable: Variable[object], right: dict[str, object], wrong: list[str]
) -> None:
    assert {text: variable.of({variable.name: text}.get) for text in right} == right
    for text in wrong:
        with pytest.raises(ConfigError, match=f"^{variable.name} '.*': expected [^\n]*$"):
            variable.of({variable.name: text}.get)


def test_a_list_of_settings_is_as_one_text() -> None:
    assert SET.of({"SET": ["share=0.5", "frame=64B"]}.get) == {"share": "0.5", "frame": "64B"}


def test_tags_to_include_imply_values_unless_they_are_given() -> None:
    included = {"OPTIONS": SimpleNamespace(include=["2R1CAND4CANDIMIX"])}
    assert texts(included.get, "density").items() >= {"CELLS": "2x1", "VSWITCH": "4", "FRAMES": "IMIX"}.items()
    assert CELLS.text({**included, "CELLS": "1x1"}.get) == "1x1"


def test_records_have_what_a_study_reads_and_no_place_of_a_run() -> None:
    given = {"TOPOLOGY": "a.yaml", "RESUME": "b", "LOSSES": "1", "STOP_LOSS": "0.5", "NIC_MODEL": "c"}
    assert texts(given.get, "outage") == {"NIC_MODEL": "c"}
    assert texts(given.get).items() >= {"LOSSES": "1", "STOP_LOSS": "0.5"}.items()
    assert not {"TOPOLOGY", "RESUME"} & texts(given.get).keys()
