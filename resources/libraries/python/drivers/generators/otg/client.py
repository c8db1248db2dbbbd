"""A client of one OTG server, by snappi: certificates are checked, answers bounded, errors are one sentence.

snappi 1.62 checks no certificate, whatever its options, and has no timeout; requests pass an adapter that adds both.
"""

import importlib
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from resources.libraries.python.drivers.generators.otg.registration import Otg
from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.bounds import LONGEST_REASON, quoted

_LOG = logging.getLogger(__name__)
_CONNECT_S, _ANSWER_S = 5.0, 60.0
_MOST_BYTES = 1 << 24


class OtgClient:
    """One server."""

    def __init__(self, settings: Otg) -> None:
        """Prepare; nothing is asked yet.

        Raises:
            Unsupported: snappi is not installed.
        """
        try:
            self._snappi = importlib.import_module("snappi")
        except ImportError as error:
            raise Unsupported("snappi is not installed: ./csit setup requirements-otg") from error
        self._location = settings.location.rstrip("/")
        self._api = self._snappi.api(location=self._location, logger=_LOG, loglevel=logging.ERROR)
        session = self._api._transport._session
        session.trust_env = False
        adapter = _adapter((settings.ca_file or True) if settings.verify else False)
        for scheme in ("https://", "http://"):
            session.mount(scheme, adapter)

    def version(self) -> str:
        """Return the version of the server, or of its API where it has none."""
        found = self._ask("version", self._api.get_version)
        return str(found.app_version or found.api_spec_version or "of an unknown version")

    def configure(self, configuration: Mapping[str, object]) -> None:
        """Set a configuration."""
        config = self._snappi.Config().deserialize(dict(configuration))
        warned = self._ask("configuration", lambda: self._api.set_config(config))
        for text in getattr(warned, "warnings", None) or ():
            _LOG.warning("%s: %s", self._location, text)

    def transmit(self, state: str) -> None:
        """`start` or `stop` all flows."""
        control = self._snappi.ControlState()
        control.traffic.flow_transmit.state = state
        self._ask(f"{state} of traffic", lambda: self._api.set_control_state(control))

    def flow_metrics(self) -> dict[str, Any]:
        """Return snappi's `FlowMetric` of all flows by name."""
        request = self._snappi.MetricsRequest()
        request.flow.flow_names = []
        found = self._ask("flow metrics", lambda: self._api.get_metrics(request))
        return {str(row.name): row for row in found.flow_metrics}

    def _ask(self, what: str, call: Callable[[], Any]) -> Any:  # noqa: ANN401 - objects of snappi
        """Call snappi.

        Raises:
            CsitError: The server is not there, not trusted, or refuses; its words are in the text.
        """
        try:
            return call()
        except Exception as error:  # boundary: snappi raises Exception itself, and whatever its parts raise
            said = self._api.from_exception(error)
            text = "; ".join(map(str, said.errors)) if said is not None else str(error)
            reason = quoted(" ".join(text.split()) or type(error).__name__, LONGEST_REASON)
            raise CsitError(f"OTG server {self._location}: {what}: {reason}") from error


def _adapter(verify: bool | str) -> Any:  # noqa: ANN401 - of a package without types
    adapters = importlib.import_module("requests.adapters")
    if verify is False:  # said by `facts` instead, once
        importlib.import_module("urllib3").disable_warnings()

    class VerifyingAdapter(adapters.HTTPAdapter):  # type: ignore[misc,name-defined]
        def send(self, request: Any, **_: object) -> Any:  # noqa: ANN401 - as in requests
            response = super().send(request, stream=True, timeout=(_CONNECT_S, _ANSWER_S), verify=verify)
            with response:
                content = response.raw.read(_MOST_BYTES + 1, decode_content=True)
            if len(content) > _MOST_BYTES:
                raise OSError(f"the answer has more than {_MOST_BYTES:,} bytes")
            response._content = content
            return response

    return VerifyingAdapter()


def stop_left(servers: Iterable[Otg]) -> list[str]:
    """Stop traffic that a killed run has left on servers; return a sentence for each that sent, or does not answer."""
    sentences = []
    for settings in servers:
        try:
            client = OtgClient(settings)
            running = [name for name, row in client.flow_metrics().items() if row.transmit == "started"]
            client.transmit("stop")
        except CsitError as error:  # the next run may be of another generator, and this one need not be there any more
            sentences.append(f"could not stop traffic: {error}")
            continue
        if running:
            sentences.append(f"stopped {len(running)} flows of {settings.location}")
    return sentences
