"""Declarations of what a page shows of a record: plots, heat maps, tables and sentences.

All take their values from tables of the record: those that are its CSV files, by name, or rows that a function makes of
its content. Texts of rows are escaped here.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from html import escape
from itertools import product
from statistics import fmean
from typing import Any, ClassVar

from csit_utils.report.cell_maps import CellMap, CellMaps, MapSquare, Scale, scale_of
from csit_utils.report.figures import (
    DASHES,
    SYMBOLS,
    Figure,
    Json,
    Panel,
    axis,
    bars,
    rounded,
    scatter,
    side_by_side,
    stacked,
)
from csit_utils.report.units import DASH, digits3

Row = Mapping[str, Any]
Rows = str | Callable[[Any], Iterable[Row]]
"""Name of a table of the record, or a function from its content to rows."""

_LOG_RANGE = 1e4
"""Largest over smallest value of a logarithmic colour scale: the instance hit may lose that much more than others."""
_WHOLE_FROM = 100
"""Smaller means have decimals."""
_REFERENCE_COLOUR = 6


def amounts(value: float, half: float | None = None) -> tuple[str, str]:
    """Return a number and half of its interval with the same number of decimals; an empty half without an interval."""
    places = 0 if abs(value) >= _WHOLE_FROM or value == 0 == (half or 0) else 1 if abs(value) >= 1 else 2
    return f"{value:,.{places}f}", "" if half is None else f"{half:,.{places}f}"


@dataclass(frozen=True)
class Column:
    """A column of a table, as an axis, a quantity of a heat map or a column on the page."""

    name: str
    title: str = ""
    """The name unless given."""
    write: Callable[[Any], str] | None = None
    """Format of a value; None for a text, or a number with the decimals that `amounts` chooses."""
    words: str = ""
    """Column with texts to show in place of the values."""
    text: bool = False
    """Texts, which are sorted by letters."""
    scale: float = 1.0
    """Factor from the table to the page."""
    ends: tuple[str, str] | None = None
    """Columns with the lower and the upper end of the confidence interval."""
    explain: tuple[str, str] = ("", "")
    """Name of an explanation, and what it is about."""
    choice: str = ""
    """Name in a list of choices; the title without its unit unless given."""
    lower_is_better: bool = False
    """The bright end of the colour scale has the lowest value."""
    log: bool = False
    link: bool = False
    """Values are views of records, shown as links to these."""
    href: str = ""
    """Column with addresses that values lead to; no link where it has none."""
    tip: str = ""
    """Column with texts shown while the pointer is on a value."""
    about: str = ""
    """Text shown while the pointer is on the head."""
    bar: bool = False
    """Values, in [0, 1], have a bar before them."""
    badge: tuple[str, str] = ("", "")
    """Column with tips of a badge before values, which have none where it is empty, and the badge."""
    code: bool = False
    """What texts have in backticks is code."""
    options: Mapping[str, object] | None = None
    """Attributes of Plotly's axis."""

    @property
    def heading(self) -> str:
        """Title on the page."""
        return self.title or self.name

    @property
    def unit(self) -> str:
        """Unit on the page, which follows a comma; empty without one."""
        return self.heading.rpartition(", ")[2] if ", " in self.heading else ""

    @property
    def chosen(self) -> str:
        """Name in a list of choices."""
        return self.choice or self.heading.partition(",")[0]

    def value(self, row: Row) -> Any:  # noqa: ANN401 - a number or a text
        """Return the value of a row in the unit of the page; None if it is unknown, or has no logarithm."""
        found = row.get(self.name)
        if found is None or self.text:
            return found
        if self.log and found <= 0:
            return None
        return found if self.scale == 1 else self.scale * found

    def end(self, row: Row, side: int) -> float | None:
        """Return the lower (0) or the upper (1) end of the interval; None without one."""
        found = None if self.ends is None else row.get(self.ends[side])
        return None if found is None else self.scale * found

    def shown(self, row: Row) -> tuple[str, str]:
        """Return the value and half of its interval as texts; the latter is empty without an interval."""
        if self.words:
            return str(row.get(self.words) or DASH), ""
        value, low, high = self.value(row), self.end(row, 0), self.end(row, 1)
        half = None if low is None or high is None else (high - low) / 2
        if value is None:
            return DASH, ""
        if self.write is not None:
            return self.write(value), "" if half is None else self.write(half)
        return (str(value), "") if self.text else amounts(value, half)

    def axis(self) -> Json:
        """Return Plotly's axis."""
        made = {"title": {"text": escape(self.title)}, "type": "log"} if self.log else axis(self.title)
        return made | dict(self.options or {})


@dataclass(frozen=True)
class RecordTables:
    """Tables of a record, or of several that are shown together."""

    anchor: str
    """Beginning of the ids of its plots."""
    simulated: bool
    content: Any
    """Argument of functions that make rows."""
    tables: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    """Rows of its CSV files, by name."""
    records: int = 1
    """Number of records on the page, which share the bound of its samples."""

    def rows(self, table: Rows) -> Sequence[Row]:
        """Return the rows of a table; none if the record does not have it."""
        return self.tables.get(table, []) if isinstance(table, str) else list(table(self.content))


def tables_by_name(tables: Iterable[tuple[str, Sequence[tuple[object, ...]]]]) -> dict[str, list[Row]]:
    """Return the rows of tables whose first row has the names of the columns."""
    return {name: [dict(zip(rows[0], row, strict=True)) for row in rows[1:]] for name, rows in tables}  # type: ignore[arg-type]


def _distinct(rows: Iterable[Row], column: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(row[column]) for row in rows))


@dataclass(frozen=True)
class Plot:
    """A plot of a table: a line, dots or bars for each value of `colour`, in the order of the rows."""

    kind: ClassVar[str] = "plots"
    name: str
    """End of its id."""
    title: str
    table: Rows
    x: Column | tuple[Column, ...]
    y: Column | tuple[Column, ...]
    """Readers choose one of several; `panels` shows all of them, one above the other."""
    colour: str
    first_colour: int = 0
    """Number in the palette; things of another kind on the page have those before."""
    choose: tuple[str, ...] = ()
    """Columns by whose values readers choose rows."""
    mark: str = "lines+markers"
    """`lines`, `markers`, both, `bars` side by side, or `stack`."""
    dash: str = ""
    """Column that also separates lines, by their dashes."""
    panels: bool = False
    beside: str = ""
    """Column by whose values plots stand beside each other, with the same axes."""
    facets: Mapping[str, str] | None = None
    """Columns by the names of filters, see `Figure.facets`."""
    hover: tuple[str, ...] = ()
    """Columns shown while the pointer is on a point, beside its coordinates."""
    hollow: str = ""
    """Column that is true for points to set apart: open symbols, hatched bars."""
    reference: str = ""
    """Column that is true for lines to compare with: dashed or dotted, grey, without points."""
    muted: tuple[str, str] = ("", "")
    """Column that is true for lines in the background, and their name in the legend: they are thin and grey. Others
    have stars and their names at their ends, in place of texts for hovering."""
    style: Mapping[str, object] = field(default_factory=dict)
    """Attributes of Plotly's traces."""
    lines: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """Attributes of single traces, by their value of `colour` or `dash`."""
    layout: Mapping[str, object] | Callable[[Column], Mapping[str, object]] = field(default_factory=dict)
    """Attributes of Plotly's layout, or a function that makes them for a horizontal axis."""

    def draw(self, tables: RecordTables) -> Figure | None:
        """Return the figure; None without a value."""
        rows = tables.rows(self.table)
        across, quantities = (
            tuple(
                each
                for each in (columns if isinstance(columns, tuple) else (columns,))
                if any(row.get(each.name) is not None and not self._is_reference(row) for row in rows)
            )
            for columns in (self.x, self.y)
        )
        if not across or not quantities:
            return None
        shown = [quantities] if self.panels else [(each,) for each in quantities]
        variants: Json = {}
        chosen = [_distinct(rows, column) for column in self.choose]
        by_choice: dict[tuple[str, ...], list[Row]] = {}
        for row in rows:
            by_choice.setdefault(tuple(str(row[column]) for column in self.choose), []).append(row)
        for choice in product(*chosen):
            own = by_choice.get(choice, [])
            for y, x in product(shown, across):
                coloured = (row for row in rows if x.name in row and not self._is_aside(row))
                names = _distinct(coloured, self.colour)
                key = (*choice, *([y[0].chosen] if len(shown) > 1 else []), *([x.chosen] if len(across) > 1 else []))
                variants["|".join(key)] = self._variant(own, x, y, names)
        choices = [tuple(each[0].chosen for each in shown), tuple(each.chosen for each in across)]
        selectors = (*chosen, *(each for each in choices if len(each) > 1))
        identity = f"{tables.anchor}-{self.name}"
        return Figure(identity, self.title, tables.simulated, selectors, variants, tuple(self.facets or ()))

    def _variant(self, rows: Sequence[Row], x: Column, y: tuple[Column, ...], names: Sequence[str]) -> Json:
        if self.mark in {"bars", "stack"}:
            rows = [row for row in rows if all(row.get(column.name) is not None for column in (x, y[0]))]
        if self.panels:
            panels = [Panel(each.axis(), list(self._traces(rows, x, each, names))) for each in y]
            made = stacked(panels, x.axis())
            return {"data": made["data"], "layout": {**made["layout"], **self._own_layout(x)}}
        if self.beside:
            parts = {
                each: list(self._traces([row for row in rows if str(row[self.beside]) == each], x, y[0], names))
                for each in _distinct(rows, self.beside)
            }
            return side_by_side({each: traces for each, traces in parts.items() if traces}, x.axis(), y[0].axis())
        return {"data": list(self._traces(rows, x, y[0], names)), "layout": self._layout(rows, x, y[0])}

    def _is_aside(self, row: Row) -> bool:
        return self._is_reference(row) or bool(row.get(self.muted[0]))

    def _is_reference(self, row: Row) -> bool:
        return bool(row.get(self.reference))

    def _traces(self, rows: Sequence[Row], x: Column, y: Column, names: Sequence[str]) -> Iterator[Json]:
        # A row without the column is about something else; None is a gap in a line.
        rows = [row for row in rows if x.name in row and y.name in row]
        dashes = _distinct(rows, self.dash) if self.dash else ("",)
        references = _distinct(filter(self._is_reference, rows), self.colour)
        groups: dict[tuple[str, str], list[Row]] = {}
        for row in rows:
            groups.setdefault((str(row[self.colour]), str(row[self.dash]) if self.dash else ""), []).append(row)
        # What stands out is drawn last, on top of the others.
        ordered = sorted(groups.items(), key=lambda group: not group[1][0].get(self.muted[0]))
        aside = [key for key, own in ordered if own[0].get(self.muted[0])]
        for (name, dash), own in ordered:
            if any(row.get(y.name) is not None for row in own):
                label = ", ".join(filter(None, (name, dash if len(dashes) > 1 else "")))
                number = names.index(name) if name in names else _REFERENCE_COLOUR
                colour: int | str = self.first_colour + number if name in names else number
                attributes: Json = {}
                if self.mark not in {"bars", "stack"}:
                    attributes["mode"] = self.mark
                    # Colours and symbols repeat after eight lines.
                    dashed = dashes.index(dash) if self.dash else number // len(SYMBOLS)
                    attributes["line"] = {"width": 2, "dash": DASHES[dashed % len(DASHES)]}
                    attributes["marker"] = {"size": 7, "symbol": SYMBOLS[number % len(SYMBOLS)]}
                if name in references:
                    line = {"dash": DASHES[1 + references.index(name) % (len(DASHES) - 1)], "width": 1.5}
                    attributes = {"mode": "lines", "hoverinfo": "skip", "line": line}
                if (name, dash) in aside:
                    colour = "dim"
                    attributes |= {"name": self.muted[1], "legendgroup": self.muted[1], "line": {"width": 1}}
                    attributes |= {"showlegend": (name, dash) == aside[0], "marker": {"size": 4}}
                elif aside and name not in references:
                    colour = number + 1
                    ends = [""] * (len(own) - 1) + [escape(label)]
                    attributes |= {"mode": "lines+markers+text", "text": ends, "textposition": "top left"}
                    attributes |= {"marker": {"size": 11, "symbol": "star"}, "cliponaxis": False}
                attributes |= {**self.style, **self.lines.get(name, {}), **self.lines.get(dash, {})}
                if self.hollow:
                    attributes["marker"] = self._set_apart(own, attributes.get("marker", {}))
                yield self._trace(own, (x, y), label, colour, attributes)

    def _set_apart(self, rows: Sequence[Row], marker: Json) -> Json:
        apart = [bool(row.get(self.hollow)) for row in rows]
        if self.mark in {"bars", "stack"}:
            return {**marker, "pattern": {"shape": ["/" * each for each in apart], "size": 5, "solidity": 0.35}}
        return {**marker, "symbol": [marker["symbol"] + "-open" * each for each in apart]}

    def _trace(
        self, rows: Sequence[Row], axes: tuple[Column, Column], name: str, colour: int | str, attributes: Json
    ) -> Json:
        x, y = axes
        points = [(_place(row, x), _place(row, y)) for row in rows]
        texts = ["<br>".join(escape(str(row.get(column) or "")) for column in self.hover) for row in rows]
        at, value = (
            f"%{{{axis}{'' if each.text else ':.4~g'}}} {escape(each.unit)}".rstrip()
            for axis, each in (("x", x), ("y", y))
        )
        hover = f"{escape(name)}<br>{at}: {value}{'<br>%{text}' * any(texts)}"
        facets = {name: str(rows[0][column]) for name, column in self.facets.items()} if self.facets else None
        more: Json = {"error_y": error} if (error := _errors(rows, y)) else {}
        common = {"texts": texts if any(texts) else (), "hover": hover, "facets": facets, **more}
        draw = bars if self.mark in {"bars", "stack"} else scatter
        return draw(attributes.pop("name", name), points, colour, **common, **attributes)

    def _layout(self, rows: Sequence[Row], x: Column, y: Column) -> Json:
        mode = {"bars": {"barmode": "group"}, "stack": {"barmode": "stack"}}.get(self.mark, {})
        return {"xaxis": _axis(rows, x), "yaxis": _axis(rows, y), **mode, **self._own_layout(x)}

    def _own_layout(self, x: Column) -> Mapping[str, object]:
        return self.layout(x) if callable(self.layout) else self.layout


def _axis(rows: Sequence[Row], column: Column) -> Json:
    """Plotly's axis; texts are in the order of the rows."""
    if not column.text:
        return column.axis()
    places = list(dict.fromkeys(_place(row, column) for row in rows if column.name in row))
    category = {"type": "category", "categoryorder": "array", "categoryarray": places}
    return {"title": {"text": escape(column.title)}, **category, **(column.options or {})}


def _place(row: Row, column: Column) -> float | str | None:
    found: float | str | None = column.value(row)
    return escape(str(found)).replace("\n", "<br>") if column.text and found is not None else found


def _errors(rows: Sequence[Row], quantity: Column) -> Json | None:
    """Error bars up to the ends of the intervals; None without any."""
    if not any(quantity.end(row, side) is not None for row in rows for side in (0, 1)):
        return None

    def lengths(side: int) -> list[Any]:
        ends = [(quantity.end(row, side), quantity.value(row)) for row in rows]
        return [0.0 if end is None else rounded(abs(end - value)) for end, value in ends]

    return {"type": "data", "symmetric": False, "array": lengths(1), "arrayminus": lengths(0)}


def plots(tables: RecordTables, *declared: Plot) -> list[Figure]:
    """Return the figures of those plots that have a value."""
    return [figure for each in declared if (figure := each.draw(tables)) is not None]


@dataclass(frozen=True)
class Heat:
    """A heat map: `rows` by `columns`; a cell shows the mean of its rows of the table."""

    kind: ClassVar[str] = "maps"
    name: str
    """End of its id."""
    title: str
    rows: Column
    columns: Column
    values: tuple[tuple[Column, Rows], ...]
    """Quantities that readers choose from, each with its table."""
    caption: Callable[[Any], str]
    choose: tuple[str, ...] = ()
    """Columns by whose values readers choose rows."""
    samples: str = ""
    """Column with the number of repetitions of a row."""
    bracket: str = ""
    """Column that is true for cells in brackets."""
    remark: tuple[str, str] = ("", "")
    """Column, and what the tip of a cell ends with if it is true."""
    log: bool = False
    explain: tuple[str, str] = ("", "")

    def draw(self, tables: RecordTables) -> CellMaps | None:
        """Return the map; None without a value."""
        rows_of = cache(tables.rows)
        known = {
            quantity.chosen: (quantity, rows_of(table))
            for quantity, table in self.values
            if any(row.get(quantity.name) is not None for row in rows_of(table))
        }
        if not known:
            return None
        every = [row for _, rows in known.values() for row in rows]
        lines, columns = _distinct(every, self.rows.name), _distinct(every, self.columns.name)
        selectors = (tuple(known), *(_distinct(every, column) for column in self.choose))

        @cache
        def cells(choice: tuple[str, ...]) -> dict[tuple[str, str], list[Row]]:
            quantity, rows = known[choice[0]]
            found: dict[tuple[str, str], list[Row]] = {}
            for row in rows:
                if row.get(quantity.name) is not None and all(
                    str(row[column]) == value for column, value in zip(self.choose, choice[1:], strict=True)
                ):
                    found.setdefault((str(row[self.rows.name]), str(row[self.columns.name])), []).append(row)
            return found

        def square(line: int, column: int, choice: tuple[str, ...]) -> MapSquare:
            place = lines[line], columns[column]
            return self._square(place, cells(choice).get(place, []), known[choice[0]][0])

        @cache
        def scale(choice: tuple[str, ...]) -> Scale:
            # One for all choices of a quantity, whose maps are compared.
            quantity = known[choice[0]][0]
            alike = (cells((choice[0], *rest)).values() for rest in product(*selectors[1:]))
            means = [fmean(map(quantity.value, own)) for found in alike for own in found]
            highest = max(means, default=0.0)
            log = self.log and highest > 0
            lowest = highest / _LOG_RANGE
            shown = [max(mean, float(f"{lowest:.1g}")) for mean in means] if log else means
            made = scale_of(shown, logarithmic=log, lower_is_better=quantity.lower_is_better)
            return replace(
                made, write=quantity.write or (lambda value: f"{amounts(value)[0]} {quantity.unit}".rstrip())
            )

        return CellMaps(
            identity=f"{tables.anchor}-{self.name}",
            title=self.title,
            simulated=tables.simulated,
            selectors=selectors,
            first=tuple(each[0] for each in selectors),
            maps=(
                CellMap(
                    title=self.caption(tables.content),
                    corner=(self.columns.heading, self.rows.heading),
                    columns=columns,
                    lines=lines,
                    hrefs=tuple((None,) * len(columns) for _ in lines),
                    square=square,
                    named=True,
                ),
            ),
            scale=scale,
            write=digits3,
            explain=self.explain,
        )

    def _square(self, place: tuple[str, str], rows: Sequence[Row], quantity: Column) -> MapSquare:
        where = f"{self.rows.heading} {place[0]}, {self.columns.heading} {place[1]}"
        if not rows:
            return MapSquare(DASH, f"{where}: {quantity.chosen} not measured", state="not-run")
        values = [quantity.value(row) for row in rows]
        mean = fmean(values)
        text, half = quantity.shown(rows[0] if len(rows) == 1 else {quantity.name: mean / quantity.scale})
        note = half and f"± {half}"
        write = quantity.write or (lambda value: amounts(value)[0])
        spread = f", mean of {len(rows)}, from {write(min(values))} to {write(max(values))}" if len(rows) > 1 else ""
        remark = f", {self.remark[1]}" if rows[0].get(self.remark[0]) else ""
        samples = f", {rows[0][self.samples]} repetitions" if rows[0].get(self.samples) else ""
        words = (quantity.chosen, text, note, "" if quantity.write else quantity.unit)
        tip = f"{where}: {' '.join(filter(None, words))}{spread}{samples}{remark}"
        return MapSquare(f"[{text}]" if rows[0].get(self.bracket) else text, tip, mean, note)


@dataclass(frozen=True)
class DrawnTable:
    """A table on the page."""

    declared: "Table"
    identity: str
    rows: Sequence[Row]


@dataclass(frozen=True)
class Table:
    """Columns of a table of the record, which readers sort and save as CSV."""

    kind: ClassVar[str] = "tables"
    name: str
    """Beginning of the name of its CSV file."""
    table: Rows
    columns: tuple[Column, ...]
    heading: str = ""
    explain: tuple[str, str] = ("", "")
    folded: str = ""
    """Title of a table that is folded at first."""
    mark: Mapping[str, str] = field(default_factory=dict)
    """CSS classes of rows by columns: that of the first one that is true."""
    classes: str = ""
    filter: bool = False
    """Whether readers filter its rows."""
    rows_are: str = "rows"
    """What the count of filtered rows is of."""
    only: tuple[str, ...] = ()
    """Columns of which one at least is true in the rows that it has; empty for all rows."""
    at_once: int | None = None
    """Number of rows that are there at once, others when the page is idle; None for all."""

    def draw(self, tables: RecordTables) -> DrawnTable | None:
        """Return the table, without columns that have no value; None without a row."""
        rows = [row for row in tables.rows(self.table) if not self.only or any(row.get(name) for name in self.only)]
        known = tuple(
            column
            for column in self.columns
            if any(row.get(column.words or column.name) not in (None, "") for row in rows)
        )
        return DrawnTable(replace(self, columns=known), f"{self.name}-{tables.anchor}", rows) if known else None

    def css_class(self, row: Row) -> str:
        """Return the CSS class of a row; empty for most."""
        return next((name for column, name in self.mark.items() if row.get(column)), "")


@dataclass(frozen=True)
class DrawnSentences:
    """Sentences on the page."""

    declared: "Sentences"
    lines: Sequence[str]


@dataclass(frozen=True)
class Sentences:
    """Sentences about the content of a record: a list, or one paragraph."""

    kind: ClassVar[str] = "sentences"
    lines: Callable[[Any], Iterable[str]]
    heading: str = ""
    explain: tuple[str, str] = ("", "")
    paragraph: bool = False
    numbered: bool = False

    def draw(self, tables: RecordTables) -> DrawnSentences | None:
        """Return the sentences; None without any."""
        lines = tuple(self.lines(tables.content))
        return DrawnSentences(self, lines) if lines else None


@dataclass(frozen=True)
class Drawing:
    """A plot made by hand."""

    kind: ClassVar[str] = "plots"
    draw: Callable[[RecordTables], Figure | None]


Block = Plot | Heat | Table | Sentences | Drawing
