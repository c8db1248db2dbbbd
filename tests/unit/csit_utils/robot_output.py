"""Real output.xml files that carry records."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from robot.api import TestSuite
from robot.utils import escape

from resources.libraries.python.model.record import Record
from resources.libraries.python.recording.marker import RESULT_MARKER


def write_output_xml(
    path: Path,
    results: Iterable[Any],
    unrecorded: Iterable[tuple[str, str, str, tuple[str, ...]]] = (),
    dump: Callable[[Any], str] = Record.model_dump_json,
) -> Path:
    """Let Robot itself write an output.xml: a test for each record, which logs what `dump` makes of it.

    `unrecorded`: Name, `Fail` or `Skip`, message and tags of tests that log no record.
    """
    suite = TestSuite("Density")
    for made in results:
        test = suite.tests.create(made.test_name, tags=made.tags)
        test.body.create_keyword("Log", [escape(RESULT_MARKER + dump(made))])
        if not made.passed:
            test.body.create_keyword("Fail", [escape(made.message)])
    for name, keyword, message, tags in unrecorded:
        suite.tests.create(name, tags=tags).body.create_keyword(keyword, [escape(message)])
    suite.run(output=str(path), console="none", log=None, report=None)
    return path
