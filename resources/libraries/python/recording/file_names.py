"""Names of what tests leave in the folder of a run. Pure."""

import re
from itertools import chain, count


def safe_name(name: str) -> str:
    """A name that any file system takes."""
    return re.sub(r"[^A-Za-z0-9._+-]+", "_", name)


class FileNames:
    """A name for each test of a run, also where two suites have tests of the same name.

    The same tests in the same order have the same names, so a run that is resumed finds its own again.
    """

    def __init__(self) -> None:
        self._test_of: dict[str, str] = {}

    def of(self, test_id: str, test_name: str) -> str:
        """The test's own name where that is free, else its long one.

        Args:
            test_id: Its long name: no other test of the run has it.
            test_name: Its own.
        """
        long = safe_name(test_id)
        names = chain((safe_name(test_name), long), (f"{long}-{number}" for number in count(2)))
        return next(name for name in names if self._test_of.setdefault(name, test_id) == test_id)
