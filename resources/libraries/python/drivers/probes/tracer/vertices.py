"""Events of pages as rows of threads and vertices. Pure."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from resources.libraries.python.drivers.probes.tracer.formats import EventFormat, Field
from resources.libraries.python.drivers.probes.tracer.graph import NONE, Rows, together
from resources.libraries.python.drivers.probes.tracer.pages import Events, Words
from resources.libraries.python.drivers.probes.tracer.rules import PLAIN, RULES, SWITCHED_IN, Ints, Rule

_MOST_SMALL = 4096
"""Codes below are looked up in a table; that is nearly all."""
_RECORD_WORDS = 64
"""Of an event's data that are looked at for a name."""


class Vertices:
    """Gives each event and its data a number, and each thread its index."""

    def __init__(self, formats: Iterable[EventFormat], threads: Sequence[int]) -> None:
        """Prepare.

        Args:
            formats: Of all events that are followed.
            threads: Thread ids; where one stands here is its index.
        """
        self.names: list[str] = []
        """Of the vertices, by their numbers."""
        self._of_name: dict[str, int] = {}
        self._thread = np.full(max(threads, default=0) + 2, -1, np.int64)
        self._thread[list(threads)] = np.arange(len(threads))
        self._kinds: list[_Kind] = []
        self._kind_of = np.full(1 << 16, -1, np.int16)
        for form in formats:
            self._kind_of[form.number] = len(self._kinds)
            self._kinds.append(_Kind(form, self))

    def number(self, name: str) -> int:
        """Of a vertex, an old or a new one."""
        if name not in self._of_name:
            self._of_name[name] = len(self.names)
            self.names.append(name)
        return self._of_name[name]

    def index(self, thread_ids: Ints) -> Ints:
        """Indexes of threads; -1 for one that is not followed."""
        return self._thread.take(thread_ids, mode="clip")  # the last place has no owner

    def rows(self, pages: Words, events: Events) -> Rows:
        """What happened to the threads that are followed.

        Args:
            pages: From which the events were decoded.
            events: Of one CPU in order of time, or of several CPUs after each other.
        """
        flat = pages.reshape(-1)
        kinds = self._kind_of.take(flat.take(events.words, mode="clip") & 0xFFFF)
        threads = np.full(kinds.size, -1, np.int64)
        vertices = np.zeros(kinds.size, np.int64)
        switched: list[Rows] = []
        for kind in np.flatnonzero(np.bincount(kinds + 1, minlength=1)[1:]):
            where = np.flatnonzero(kinds == kind)
            words = events.words[where]
            chosen = self._kinds[kind]
            threads[where], vertices[where] = chosen.happened(flat, words)
            if chosen.switches:
                entered, entering = chosen.entered(flat, words)
                known = entered >= 0
                switched.append(Rows(entered[known], events.times_ns[where[known]], entering[known]))
        known = threads >= 0
        return together([Rows(threads[known], events.times_ns[known], vertices[known]), *(switched or [NONE])])


class _Kind:
    """One kind of event."""

    def __init__(self, form: EventFormat, vertices: Vertices) -> None:
        self.switches = form.name == "sched_switch"
        self._read = _Reader(form)
        self._vertices = vertices
        self._form = form
        self._rule = RULES.get(form.name, PLAIN)
        self._codes = _Codes(form, self._rule, vertices)
        self._entered = _Codes(form, SWITCHED_IN, vertices)

    def happened(self, flat: Words, words: Ints) -> tuple[Ints, Ints]:
        """Indexes of thread and vertex of each event."""
        return self._by(self._rule, self._codes, flat, words)

    def entered(self, flat: Words, words: Ints) -> tuple[Ints, Ints]:
        """The same of the threads that are switched in."""
        return self._by(SWITCHED_IN, self._entered, flat, words)

    def _by(self, rule: Rule, codes: "_Codes", flat: Words, words: Ints) -> tuple[Ints, Ints]:
        def get(field: str) -> Ints:
            return self._read.field(flat, words, field)

        return self._vertices.index(get(rule.thread)), codes.vertices(rule.code(get), flat, words)


class _Reader:
    """Fields of one kind of event."""

    def __init__(self, form: EventFormat) -> None:
        self._fields: Mapping[str, Field] = form.fields

    def field(self, flat: Words, words: Ints, name: str) -> Ints:
        place = self._fields.get(name)
        if place is None:
            return np.zeros(words.size, np.int64)
        values = flat.take(words + place.offset // 4, mode="clip")
        if place.size < 4:
            values = (values >> np.uint32(8 * (place.offset % 4))) & np.uint32((1 << 8 * place.size) - 1)
        return values.astype(np.int64)


class _Codes:
    """Numbers of vertices by the codes of a rule."""

    def __init__(self, form: EventFormat, rule: Rule, vertices: Vertices) -> None:
        self._form = form
        self._rule = rule
        self._vertices = vertices
        self._small = np.full(_MOST_SMALL, -1, np.int64)
        self._large: dict[int, int] = {}

    def vertices(self, codes: Ints, flat: Words, words: Ints) -> Ints:
        found = self._small.take(codes, mode="clip")
        large = codes >= _MOST_SMALL
        for code in np.unique(codes[large]).tolist() if large.any() else ():
            where = np.flatnonzero(codes == code)
            if code not in self._large:
                self._large[code] = self._new(code, flat, int(words[where[0]]))
            found[where] = self._large[code]
        while (unknown := np.flatnonzero(found < 0)).size:
            code = int(codes[unknown[0]])
            self._small[code] = self._new(code, flat, int(words[unknown[0]]))
            found[unknown] = self._small[codes[unknown]]
        return found

    def _new(self, code: int, flat: Words, word: int) -> int:
        record = flat[word : word + _RECORD_WORDS].tobytes()
        data = self._rule.name(self._form, code, record)
        return self._vertices.number(f"{self._form.name}:{data}" if data else self._form.name)
