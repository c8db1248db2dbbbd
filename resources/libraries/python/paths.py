"""Folders of the project."""

from pathlib import Path

PROJECT = Path(__file__).resolve().parents[3]
"""Root of the project. On a node of a lab it holds `resources` only."""
RESOURCES = PROJECT / "resources"
LOCAL_TOPOLOGY = PROJECT / "topologies" / "local.yaml"
"""Testbed of the machine at hand."""
