"""What a study says of itself: how its specification is read, and how its result is shown."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from resources.libraries.python.csv_tables import Table
from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.load import load_yaml
from resources.libraries.python.model.record import Record
from resources.libraries.python.model.request.variables import Lookup
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.paths import specification_file
from resources.libraries.python.search.profiles import profile


class StudyKind:
    """Declarations of a study with specifications."""

    RECORD: ClassVar[type[Record]]
    PAYLOAD: ClassVar[str] = ""
    """Field of the record for the result; empty for one with the name of the study."""
    SPECIFICATION: ClassVar[type[Frozen]]
    """Class of a specification whose file has just its fields; others are read by `read`."""

    @classmethod
    def asked(cls, name: str, keys: Mapping[str, str], choices: Lookup, topology: Topology) -> Any:  # noqa: ANN401, ARG003
        """Load the specification of a test, some of its keys set otherwise.

        Args:
            name: Of its file, see `specification_file`.
            keys: By name.
            choices: Variables of the suite.
            topology: The testbed.

        Raises:
            ConfigError: There is none, or it does not fit.
        """
        found = cls.read(specification_file(name), keys)
        if search := getattr(found, "search", ""):
            profile(search)  # a wrong name is an error now, and not in the first step
        return found

    @classmethod
    def read(cls, file: Path, settings: Mapping[str, str], /) -> Any:  # noqa: ANN401 - a specification
        """Read the file of a specification, some of its keys set otherwise.

        Raises:
            ConfigError: It does not fit.
        """
        return load_yaml(file, cls.SPECIFICATION, settings)

    @classmethod
    def refuse(cls, choices: Lookup, topology: Topology) -> None:
        """Refuse wrong variables before a run, beside those that are refused by their own parsers.

        Raises:
            ConfigError: One is wrong.
        """

    @classmethod
    def tables(cls, record: Any) -> Iterable[Table]:  # noqa: ANN401, ARG003 - of its class
        """Tables of a record, which become CSV files."""
        return ()

    @classmethod
    def headline(cls, found: Any) -> str:  # noqa: ANN401 - its payload
        """What was measured, in one line of the console."""
        return f"{found.spec.name}: measured"

    @classmethod
    def sentences(cls, found: Any) -> Iterable[str]:  # noqa: ANN401, ARG003 - its payload
        """Result in sentences, for the console and the log."""
        return ()

    @classmethod
    def lines(cls, record: Any) -> Iterable[str]:  # noqa: ANN401 - of its class
        """Result of a test for the console and the log; nothing where nothing was measured."""
        if (found := getattr(record, cls.payload())) is not None:
            yield cls.headline(found) + " (simulated)" * record.simulated
            yield from cls.sentences(found)

    @classmethod
    def name(cls) -> str:
        """Name of the study."""
        return str(cls.RECORD.model_fields["study"].default)

    @classmethod
    def payload(cls) -> str:
        """Field of the record for the result."""
        return cls.PAYLOAD or cls.name()
