"""Reading of all the files a person names."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from csit_utils.dataset.items import Dataset, Item, Problem, ReadError, Recorded, RefusedCell, Status
from csit_utils.dataset.output_xml import read_output_xml
from csit_utils.dataset.records import parse_record


def load(paths: Iterable[Path]) -> Dataset:
    """Read output.xml files, record files (`.json`) and directories of either.

    A file that cannot be read becomes a problem and costs nothing else. A record that was read already, from
    another file or from the same one named twice, is not counted again.
    """
    dataset = Dataset()
    seen: set[str] = set()
    refused: set[RefusedCell] = set()  # every suite of a service type tells of the same ones
    for item in (item for path in paths for item in _read(path)):
        if isinstance(item, Recorded):
            if item.digest in seen:
                continue
            seen.add(item.digest)
        if isinstance(item, RefusedCell):
            if item in refused:
                continue
            refused.add(item)
        dataset.add(item)
    return dataset


def _read(path: Path) -> Iterator[Item]:
    if path.is_dir():
        files = sorted(found for found in path.rglob("*") if found.name == "output.xml" or found.suffix == ".json")
        if not files:
            yield Problem(str(path), f"{path}: the directory has no output.xml and no .json records")
        # An output.xml knows how the test ended after its record was written, so it comes first.
        for file in sorted(files, key=lambda found: found.suffix == ".json"):
            yield from _read(file)
    elif path.suffix == ".json":
        yield _read_json(path)
    else:
        yield from read_output_xml(path)


def _read_json(path: Path) -> Item:
    try:
        result = parse_record(path.read_bytes(), str(path))
    except OSError as error:
        return Problem(str(path), f"{path}: cannot be read: {error.strerror or error}")
    except ReadError as error:
        return Problem(str(path), str(error))
    return Recorded(result, str(path), Status.PASS if result.passed else Status.FAIL, result.message)
