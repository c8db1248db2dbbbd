"""What the libraries that measure have in common: their suites open the testbed, and close it."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

from robot.api.deco import keyword
from robot.errors import PassExecution

from resources.libraries.python.model.characterization import Characterization
from resources.libraries.python.model.topology import Topology
from resources.libraries.python.studies.shared.characterization_keeper import AnyJournal, CharacterizationKeeper
from resources.libraries.python.studies.shared.choices import Lookup, chosen_topology
from resources.libraries.python.studies.shared.console import Console
from resources.libraries.python.studies.shared.robot_context import variable
from resources.libraries.python.studies.shared.testbed_session import Testbed


class MeasuringLibrary(ABC):
    """A library whose suites reserve a testbed. What its variables choose is in its introduction."""

    def __init__(self) -> None:
        self._testbed = Testbed()

    @keyword
    def open_testbed(self) -> None:
        """Load the testbed that the variable ``TOPOLOGY`` names, check it, reserve it and remove leftovers.

        Fails in one sentence when a choice is wrong, the machine lacks something, somebody else uses it, or there is no
        space for results. Use it as suite setup; where an outer suite has opened the testbed, it stays open until that
        suite closes it.

        | Suite Setup | Open Testbed |
        """
        if self._testbed.enter():
            self._open()

    @keyword
    def close_testbed(self) -> None:
        """Remove what is left of a run that was cut short, and give the testbed back. Use it as suite teardown.

        | Suite Teardown | Close Testbed |
        """
        self._testbed.leave(self._close)

    @abstractmethod
    def _open(self) -> None:
        """Read what was chosen, and open the testbed and the place of the results."""

    @abstractmethod
    def _close(self) -> None:
        """Close the place of the results; the testbed is closed."""


class CharacterizingLibrary(MeasuringLibrary):
    """One whose tests write records of characterizations."""

    def __init__(self) -> None:
        super().__init__()
        self._keeper = CharacterizationKeeper()
        self._choices: Lookup = variable

    def _open(self) -> None:
        topology = self._chosen()
        self._keeper.open(Path(str(variable("OUTPUT DIR"))))
        environment = self._testbed.open(topology)
        # As the file says it: suites of one run may choose another generator or none.
        self._keeper.begin(self._choices, chosen_topology(self._choices), environment)

    def _close(self) -> None:
        self._keeper.close()

    def _resumed(
        self,
        kind: type[AnyJournal],
        digest: str,
        name: str,
        on_carried: Callable[[Characterization], None] = lambda _: None,
    ) -> AnyJournal:
        """The journal of the present test; where that had passed before the run was resumed it passes at once.

        Args:
            kind: Of the journal.
            digest: Of what the test measures, and of the system.
            name: Of what is measured, for the console.
            on_carried: Takes the record of a test that had passed.
        """
        journal = self._keeper.journal(kind, digest)
        if (record := self._keeper.carried_over(journal)) is not None:
            on_carried(record)
            console = Console()
            console.line("")  # Robot's own line of the test may still be open
            console.line(f"{name}: carried over")
            raise PassExecution("")
        return journal

    def _chosen(self) -> Topology:
        """Read what was chosen; return the testbed.

        Raises:
            ConfigError: A choice is wrong.
        """
        return chosen_topology(self._choices)
