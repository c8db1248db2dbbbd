// Heat maps of the density page: going through cells by arrow keys, which row and column a cell is in, the way to a cell's
// core map, pictures, and which of many maps are shown.
{
  const maps = [...document.querySelectorAll(".map[data-map]")];
  const cells = (row) => [...row.querySelectorAll("td")];
  const focusable = (cell) => cell?.querySelector("a, span[tabindex]");

  // Arrow keys inside any heat map.
  const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  document.addEventListener("keydown", (event) => {
    const step = STEPS[event.key], cell = event.target.closest?.("table.heat tbody td");
    if (!step || !cell) return;
    const row = cell.parentElement, rows = [...row.parentElement.rows];
    const next = cells(rows[rows.indexOf(row) + step[0]] ?? row)[cells(row).indexOf(cell) + step[1]];
    if (next) { event.preventDefault(); focusable(next)?.focus(); }
  });

  // The heads of the row and the column that is looked at.
  function lines(cell) {
    document.querySelectorAll(".heat th.looked").forEach((head) => head.classList.remove("looked"));
    const table = cell?.closest("table.heat");
    if (!table) return;
    const column = cells(cell.parentElement).indexOf(cell);
    cell.parentElement.querySelector("th")?.classList.add("looked");
    table.tHead.rows[table.tHead.rows.length - 1].cells[column + 1]?.classList.add("looked");
  }
  // From the cell that is looked at to the core map of its test: in the cell's corner, and the next stop of the Tab key.
  const way = csit.make("a", { class: "to-cores", "aria-label": "Core map of this test", "data-tip": "Core map of this test" });
  function offer(cell) {
    if (!cell?.dataset.v || !cell.closest(".map[data-map]") || cell.contains(way)) return;
    const test = cell.querySelector("a")?.getAttribute("href")?.match(/^(.*#)(test-.*)$/);
    if (!test) return;
    way.setAttribute("href", `${test[1]}cores-${test[2]}`);
    cell.append(way);
  }
  ["mouseover", "focusin"].forEach((kind) => document.addEventListener(kind, (event) => {
    const cell = event.target.closest?.("table.heat tbody td");
    lines(cell);
    offer(cell);
  }));

  // A map as a picture, drawn anew by the library for plots.
  const text = (element) => element?.textContent.replace(/\s+/g, " ").trim() ?? "";
  csit.mapFigure = (map) => {
    const table = map.querySelector("table.heat"), rows = [...table.tBodies[0].rows];
    const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells].slice(1).map(text);
    const y = rows.map((row) => text(row.querySelector("th")));
    const factor = Number(map.dataset.factor ?? 1);
    const value = (cell) => (cell.dataset.v !== "" && Number.isFinite(Number(cell.dataset.v)) && cell.style.background
      ? Number(cell.dataset.v) / factor : null);
    const label = (cell) => [...(focusable(cell) ?? cell).childNodes].filter((node) => !node.matches?.(".why"))
      .map((node) => text(node)).filter(Boolean).join("<br>").replaceAll("&", "&amp;");
    const notes = rows.flatMap((row, k) => cells(row).map((cell, j) => [cell, j, k])).filter(([cell]) => value(cell) === null)
      .map(([cell, j, k]) => ({ x: heads[j], y: y[k], text: label(cell), showarrow: false, font: { size: 10, color: "dim" } }));
    const trace = {
      type: "heatmap", x: heads, y, z: rows.map((row) => cells(row).map(value)), texttemplate: "%{text}",
      text: rows.map((row) => cells(row).map(label)), zmin: Number(map.dataset.low), zmax: Number(map.dataset.top),
      colorbar: { title: { text: map.dataset.unit } }, meta: { scale: map.dataset.scale ?? "sequential" }, hoverinfo: "skip",
    };
    const layout = {
      height: 150 + 46 * rows.length, annotations: notes,
      xaxis: { type: "category", title: { text: "NFs per service instance" }, showgrid: false },
      yaxis: { type: "category", title: { text: "service instances" }, autorange: "reversed", showgrid: false },
    };
    const simulated = "simulated" in map.dataset;
    return { title: map.dataset.map.replace(/[<>&]/g, " "), simulated, selectors: [], facets: [], variants: { all: { data: [trace], layout } } };
  };
  csit.mapPictures = (map) => {
    const place = map.querySelector(".saves"), name = map.id || "heat-map";
    ["svg", "png"].forEach((format) => place?.append(csit.button(format.toUpperCase(),
      `Save as ${format.toUpperCase()}`, () => csit.picture(csit.mapFigure(map), "all", name, format))));
  };
  maps.forEach(csit.mapPictures);

  // Which maps are shown, where there are many of them.
  const MAX_MAPS = 24;
  const bar = document.getElementById("map-choices");
  const names = ["metric", "service type", "NF size", "vSwitch", "frame"];
  const chosen = {}, selects = {};
  const facets = new Map(maps.map((map) => [map, JSON.parse(map.dataset.facets)]));
  const fits = (map) => Object.entries(chosen).every(([name, value]) => value === "all" || facets.get(map)[name] === value);
  function show() {
    maps.forEach((map) => { map.hidden = !fits(map); });
    document.querySelectorAll(".metric").forEach((metric) => {
      const own = [...metric.querySelectorAll(".map[data-map]")];
      if (own.length) metric.hidden = own.every((map) => map.hidden);
    });
    const left = maps.filter((map) => !map.hidden).length;
    bar.querySelector(".shown").textContent = `${left} of ${maps.length} heat maps`;
  }
  if (bar && maps.length > 1) {
    for (const name of names) {
      const values = [...new Set(maps.map((map) => facets.get(map)[name]))];
      if (values.length < 2) continue;
      // One metric at a time; of the rest, all that are not too many.
      chosen[name] = name === "metric" ? values[0] : "all";
      const choice = csit.choice(name, ["all", ...values], chosen[name], (value) => { chosen[name] = value; show(); });
      selects[name] = choice.querySelector("select");
      bar.querySelector(".choices").append(choice);
    }
    // Service types are what readers lay side by side: they are parted last.
    for (const name of ["frame", "vSwitch", "NF size", "service type"].filter((each) => each in chosen)) {
      if (maps.filter(fits).length <= MAX_MAPS) break;
      chosen[name] = selects[name].value = facets.get(maps[0])[name];
    }
    bar.hidden = Object.keys(chosen).length === 0;
    show();
  }
  // A link to a cell shows its map.
  csit.reveal = (element) => {
    if (!element.closest("[hidden]")) return;
    const own = facets.get(element.closest(".map[data-map]")) ?? {};
    Object.keys(own).filter((name) => (chosen[name] ?? "all") !== "all")
      .forEach((name) => { chosen[name] = selects[name].value = own[name]; });
    if (bar) show();
  };
}
