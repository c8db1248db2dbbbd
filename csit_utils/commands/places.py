"""Where things are in the project."""

from pathlib import Path

PROJECT = Path(__file__).parents[2]
LOCAL_TOPOLOGY = PROJECT / "topologies" / "local.yaml"
