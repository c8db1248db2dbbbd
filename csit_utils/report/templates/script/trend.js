// The trend page: chooses among the small drawings, and draws the chosen one large.
if (document.getElementById("trend-data")) {
  const data = csit.json("trend-data");
  const canvas = csit.make("div", { class: "canvas", role: "img" });
  const plot = csit.make("figure", { class: "plot" }, csit.make("figcaption", {}, csit.make("span", { class: "choices" })), canvas);
  const big = csit.make("div", { class: "big-trend" }, csit.make("h3"), csit.make("p", { class: "note" }), plot);
  const cells = [...document.querySelectorAll(".sparks a")];

  const filter = document.getElementById("trend-filter");  // only with cells that changed
  const buttons = [...document.querySelectorAll(".states button")];
  const texts = new Map(cells.map((cell) => {
    const group = cell.closest(".spark-group").querySelector("h3").textContent;
    return [cell, `${cell.textContent} ${group}`.toLowerCase()];
  }));
  function apply() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const states = buttons.filter((one) => one.getAttribute("aria-pressed") === "true").map((one) => one.dataset.state);
    cells.forEach((cell) => {
      const wanted = !states.length || states.some((state) => cell.classList.contains(state));
      cell.hidden = !wanted || !words.every((word) => texts.get(cell).includes(word));
    });
    document.querySelectorAll(".spark-group").forEach((group) => {
      group.hidden = ![...group.querySelectorAll(".sparks a")].some((cell) => !cell.hidden);
    });
  }
  filter?.addEventListener("input", apply);
  buttons.forEach((button) => button.addEventListener("click", () => {
    button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
    apply();
  }));

  function figure(cell) {
    const system = data.systems[cell.s];
    const largest = Math.max(...cell.v);
    const [factor, unit] = cell.u !== undefined ? [1, cell.u] : [[1e9, "Gpps"], [1e6, "Mpps"], [1e3, "kpps"], [1, "pps"]].find(([size]) => largest >= size) || [1, "pps"];
    const when = (run) => system.runs[run][1];
    const rate = (value) => `${(value / factor).toPrecision(4)} ${unit}`.trim();
    const hover = (run) => `${escaped(system.runs[run][0])}<br>${escaped(system.runs[run][2])}`;
    const [head, tails] = cell.a;
    const anchors = tails.split(" ").map((tail) => head + tail);
    const at = new Map(cell.r.map((run, index) => [run, index]));
    // One point per run, with a gap where there is none, so that the line is not drawn across it.
    const runs = system.runs.map((_, run) => run).filter((run) => run >= cell.r[0]);
    const data_ = [{
      type: "scatter", mode: "lines+markers", name: "runs", meta: { colour: 6 },
      x: runs.map(when), y: runs.map((run) => (at.has(run) ? cell.v[at.get(run)] / factor : null)),
      text: runs.map((run) => (at.has(run) ? `${rate(cell.v[at.get(run)])}<br>${hover(run)}` : "")),
      customdata: runs.map((run) => (at.has(run) && !cell.c ? anchors[at.get(run)] : null)),
      hovertemplate: "%{text}<extra></extra>", line: { width: 1 }, marker: { size: 6 }, connectgaps: false,
    }];
    const steps = { x: [], y: [] };
    (cell.l || []).forEach(([first, last, level]) => {
      steps.x.push(when(cell.r[first]), when(cell.r[last]), null);
      steps.y.push(level / factor, level / factor, null);
    });
    if (steps.x.length) data_.push({ type: "scatter", mode: "lines", name: "level", meta: { colour: 0 }, ...steps, line: { width: 3 }, hoverinfo: "skip" });
    const events = cell.e || [];
    [[false, "", "regression", 1], [true, "", "progression", 2], ...["suspected", "probable"].flatMap((doubt) => [[false, doubt, doubt, 1], [true, doubt, doubt, 2]])]
      .forEach(([better, doubt, name, colour]) => {
        const own = events.filter((event) => event[2] === better && event[3] === doubt);
        if (!own.length) return;
        data_.push({
          type: "scatter", mode: "markers", name, meta: { colour },
          x: own.map(([index]) => when(cell.r[index])), y: own.map(([, level]) => level / factor),
          text: own.map(([index, level]) => `${name}: to ${rate(level)}<br>${hover(cell.r[index])}`), hovertemplate: "%{text}<extra></extra>",
          marker: { size: 14, symbol: `triangle-${better ? "up" : "down"}${doubt ? "-open" : ""}`, line: { width: 2 } },
        });
      });
    if (cell.f) data_.push({
      type: "scatter", mode: "markers", name: "did not pass", meta: { colour: 1 },
      x: cell.f.map(([run]) => when(run)), y: cell.f.map(() => Math.min(...cell.v) / factor),
      text: cell.f.map(([run, message]) => `${escaped(message) || "did not pass"}<br>${hover(run)}`), hovertemplate: "%{text}<extra></extra>",
      marker: { size: 11, symbol: "line-ns-open", line: { width: 2 } },
    });
    const layout = { xaxis: { type: "date", title: { text: "" } }, yaxis: { title: { text: unit } } };
    return { title: "", simulated: system.simulated, selectors: [], facets: [], variants: { "": { data: data_, layout } } };
  }

  function escaped(text) {
    return String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  }

  async function show() {
    let address = "";
    try { address = decodeURIComponent(location.hash.slice(1)); } catch { return; }
    const cell = Object.hasOwn(data.cells, address) ? data.cells[address] : null;
    if (!cell) return;
    cells.forEach((one) => { one.toggleAttribute("aria-current", one.id === address); });
    const system = data.systems[cell.s];
    const card = document.getElementById(address);
    if (card?.matches("a")) card.after(big);  // in the grid, as a row of its own
    else if (card) document.querySelector("#trend-steady .scroll").before(big);
    else document.getElementById("trend-few").append(big);
    big.querySelector("h3").textContent = `${cell.n} · ${system.name}`;
    big.querySelector("p").textContent = cell.d;
    plot.dataset.figure = address;
    const title = `${cell.n}, ${system.name}`;
    canvas.setAttribute("aria-label", title);
    await csit.plot(plot, { ...figure(cell), title });
    if (card?.matches("tr")) big.scrollIntoView({ block: "nearest" });
    canvas.removeAllListeners("plotly_click");
    canvas.on("plotly_click", (event) => {
      const anchor = event.points[0].customdata;
      if (anchor) location.href = document.documentElement.dataset.assets ? `tests/${anchor}.html` : `#${anchor}`;
    });
  }
  addEventListener("hashchange", show);
  show();
}
