"""Puts the rows of the plan into a density suite in place of its placeholders.

Robot filters tests by tags before a suite starts. So a suite holds two placeholders: one that carries every tag a row can
have and passes any `--include`, one without tags that passes any `--exclude`. The patterns are applied again to the rows.
"""

from collections.abc import Sequence

from robot.model import TagPatterns
from robot.running import TestSuite

from resources.libraries.python.planning.rows import Row


def put_rows(suite: TestSuite, rows: Sequence[Row], include: Sequence[str], exclude: Sequence[str]) -> int:
    """Replace the placeholders of a suite by rows; a row keeps the placeholder's setup, teardown and template.

    Returns:
        How many rows the suite has now.
    """
    placeholder = suite.tests[0]
    wanted, unwanted = TagPatterns(include), TagPatterns(exclude)
    suite.tests.clear()
    for row in rows:
        if (include and not wanted.match(row.tags)) or unwanted.match(row.tags):
            continue
        test = placeholder.deepcopy(name=row.name, tags=row.tags, lineno=placeholder.lineno)
        test.body[0].args = row.arguments
        suite.tests.append(test)
    return len(suite.tests)
