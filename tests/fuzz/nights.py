"""Plan of a night."""

from pathlib import Path

from tests.unit.recording.journals import AT

_FIRST = {"name": "a.1", "title": "CSC 1R1C", "why": "never measured", "seconds": 60.0}
NIGHT = {
    "choices": {
        **{
            "topology": str(Path(__file__).parents[2] / "topologies" / "sim.yaml"),
            "simulated": True,
            "hours": 1e-4,
            "types": "CSC",
        },
        **{"tests": "MRR", "variables": {"SEARCH": "quick", "CELLS": "1x1"}, "data": ["/nowhere"], "within": 0.02},
        **{"unseen_days": 7, "began": AT},
    },
    **{"summary": "1 measurement", "opening_s": 1.0, "left_out": [["CSC 9R9C", "needs 99 cores"]]},
    "runs": [{"folder": "01-unseen", "study": False, "tests": [_FIRST]}],
}
"""As `./csit night` writes it."""
