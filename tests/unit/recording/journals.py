"""Parts of a journal."""

from resources.libraries.python.model.request.goal import SearchProfile
from resources.libraries.python.recording.journal import Choices, RunBegun
from tests.unit.csit_utils import builders

AT = "2026-11-21T10:00:00.000+00:00"


CHOICES = Choices(
    topology="/t.yaml",
    topology_digest="d",
    variables={"CELLS": "1x1"},
    profile=SearchProfile(**builders.PROFILE.model_dump()),
)


def header(line: int = 1, **changes: object) -> RunBegun:
    made = RunBegun(
        line=line, at=AT, run_id="r", boot_id="boot-1", choices=CHOICES, environment=builders.ENVIRONMENT, folder="/"
    )
    return made.model_copy(update=changes)
