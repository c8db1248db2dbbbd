"""Frame sizes: by name, or any number of bytes that Ethernet has."""

import pytest
from pydantic import TypeAdapter, ValidationError

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.bounds import ASKED
from resources.libraries.python.model.request.frames import FrameByName, frame


def test_a_name_of_the_file_is_that_mix_however_it_is_written() -> None:
    assert frame("imix") == frame("IMIX")
    assert frame("IMIX").mean_bytes == pytest.approx(353.83, abs=0.01)


@pytest.mark.parametrize("name", ["64B", "768B", "1300b", "9018B", "0768B"])
def test_any_size_has_a_frame(name: str) -> None:
    made = frame(name)
    assert made.mean_bytes == made.largest_bytes == int(name[:-1])
    assert made.name == f"{made.largest_bytes}B"


@pytest.mark.parametrize("name", ["63B", "9019B", "B", "63", "9019", "-64B", "64.5B", "", "JUMBO", "1e3B"])
def test_what_is_no_frame_is_refused_with_what_there_is(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"no frame size '{name}'; frames.yaml has 64B, .* any from 64B to 9018B"):
        frame(name)


def test_a_number_of_bytes_without_its_unit_is_refused_with_what_is_meant() -> None:
    with pytest.raises(ConfigError, match=r"^no frame size '768'; did you mean 768B\? frames.yaml has 64B, "):
        frame("768")


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        (512, "no frame size '512'; did you mean 512B? "),
        (512.0, "expected a frame size, such as 512B or IMIX"),
        (True, "expected a frame size, such as 512B or IMIX"),
        ({"name": "512B"}, "expected a frame size, such as 512B or IMIX"),
        (["512B"], "expected a frame size, such as 512B or IMIX"),
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
