"""A record in the making: what is known of a test so far, turned into its record whatever happened."""

from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from resources.libraries.python.model.base import digest_of_model
from resources.libraries.python.model.record import Record
from resources.libraries.python.model.result import DeploymentTimes, Environment, Finding, Verdict, VerdictKind
from resources.libraries.python.model.testbed.topology import Topology, World
from resources.libraries.python.redaction import redacted_model

RecordT_co = TypeVar("RecordT_co", bound=Record, covariant=True)


def utc_now() -> str:
    """Now, as results write it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class Draft(Generic[RecordT_co]):
    """Fields of a record, filled by the phases of a test. Another name than that of a field is an error."""

    def __init__(self, record: type[RecordT_co], topology: Topology, environment: Environment, **asked: object) -> None:
        own = vars(self)
        own["topology"], own["_record"] = topology, record
        own["deploy_s"] = own["remove_s"] = None
        own["_known"] = {}
        self.environment, self.started_at = environment, utc_now()
        self.warnings = list[str]()
        for name, value in asked.items():
            setattr(self, name, value)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - of the record's type
        known = vars(self).get("_known", {})
        if name in known:
            return known[name]
        field = self._field(name)
        if field.is_required():
            return None
        return known.setdefault(name, field.get_default(call_default_factory=True))

    def __setattr__(self, name: str, value: Any) -> None:  # noqa: ANN401 - of the record's type
        if name in ("deploy_s", "remove_s"):
            vars(self)[name] = value
            return
        self._field(name)
        self._known[name] = value

    def _field(self, name: str) -> Any:  # noqa: ANN401 - a field of pydantic
        fields = {} if name.startswith("_") else vars(self)["_record"].model_fields
        if name not in fields:
            raise AttributeError(f"a record has no {name}")
        return fields[name]

    def finish(
        self, *, test_id: str, test_name: str, tags: tuple[str, ...], passed: bool, message: str, skipped: bool = False
    ) -> RecordT_co:
        """Close the record, without secrets. The verdict of a test that did not pass begins with the reason."""
        values = dict(self._known)
        times = None if self.deploy_s is None else DeploymentTimes(deploy_s=self.deploy_s, remove_s=self.remove_s)
        made: RecordT_co = self._record(
            **values
            | {
                "test_id": test_id,
                "test_name": test_name,
                "tags": tags,
                "finished_at": utc_now(),
                "passed": passed,
                "skipped": skipped,
                "message": message,
                "world": self.topology.world,
                "simulated": self.topology.world is World.SIM,
                "testbed": self.topology.metadata.name,
                "plan_digest": digest_of_model(self.plan) if self.plan else None,
                "deployment": times,
                "verdict": self._verdict(passed=passed, skipped=skipped, message=message),
            }
        )
        return redacted_model(made)

    @property
    def judged(self) -> bool:
        """Whether the record is of a study whose tests have a verdict."""
        return bool(self._record.model_fields["verdict"].is_required())

    def _verdict(self, *, passed: bool, skipped: bool, message: str) -> Verdict | None:
        verdict: Verdict | None = self.verdict
        first: list[Finding] = []
        if self.quarantined is not None:
            attempts = enumerate(self.broken, 1)
            first += (
                Finding(kind=VerdictKind.QUARANTINED, text=f"attempt {number}: {reason}") for number, reason in attempts
            )
        if self.judged and (verdict is None or (not passed and VerdictKind.FAILED not in verdict.kinds)):
            first.append(Finding(kind=VerdictKind.SKIPPED if skipped else VerdictKind.FAILED, text=message))
        return Verdict(findings=(*first, *(verdict.findings if verdict else ()))) if first else verdict
