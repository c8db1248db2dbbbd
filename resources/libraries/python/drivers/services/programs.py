"""Programs that scripts of a specification say they start."""

import shutil
from collections.abc import Sequence

from resources.libraries.python.drivers.services.scripts import environment
from resources.libraries.python.errors import Unsupported


def check(whose: str, needed: Sequence[str]) -> None:
    """See whether they are installed, by the search path that scripts get.

    Args:
        whose: For a person: `the service`.
        needed: Names or absolute paths of programs.

    Raises:
        Unsupported: Some are not there.
    """
    path = environment({})["PATH"]
    absent = [name for name in needed if shutil.which(name, path=path) is None]
    if absent:
        raise Unsupported(f"{', '.join(absent)} missing, which the scripts of {whose} need; searched in {path}")
