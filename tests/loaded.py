"""Items of result files with whole records, by the import that all commands use."""

from collections.abc import Iterable
from pathlib import Path

from csit_utils.commands.results.inputs import opened
from csit_utils.dataset.items import Dataset, Item


def items(*paths: Path) -> list[Item]:
    """Read files and folders, which may have no test."""
    return list(opened([*paths]).contents(may_be_empty=True).items())


def load(paths: Iterable[Path]) -> Dataset:
    """Read files and folders, and sort the items by type."""
    dataset = Dataset()
    for item in items(*paths):
        dataset.add(item)
    return dataset
