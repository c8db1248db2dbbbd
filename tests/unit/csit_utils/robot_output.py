"""Real output.xml files that carry records."""

from collections.abc import Iterable
from pathlib import Path

from robot.api import TestSuite
from robot.utils import escape

from resources.libraries.python.model.record import Record
from resources.libraries.python.recording.marker import RESULT_MARKER
from resources.libraries.python.studies.density.model.record import DensityRecord


def write_output_xml(
    path: Path,
    results: Iterable[DensityRecord | Record],
    unrecorded: Iterable[tuple[str, str, str, tuple[str, ...]]] = (),
) -> Path:
    """Let Robot itself write an output.xml whose tests log the records.

    Args:
        path: The file.
        results: A test for each; one that did not pass fails with its message.
        unrecorded: Name, `Fail` or `Skip`, message and tags of tests that log no record.
    """
    suite = TestSuite("Density")
    for made in results:
        test = suite.tests.create(made.test_name, tags=made.tags)
        test.body.create_keyword("Log", [escape(RESULT_MARKER + made.model_dump_json())])
        if not made.passed:
            test.body.create_keyword("Fail", [escape(made.message)])
    for name, keyword, message, tags in unrecorded:
        test = suite.tests.create(name, tags=tags)
        test.body.create_keyword(keyword, [escape(message)])
    suite.run(output=str(path), console="none", log=None, report=None)
    return path
