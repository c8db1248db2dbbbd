"use strict";
// Everything here improves a page that is complete without it, except for the curves.
(() => {
  const json = (id) => JSON.parse(document.getElementById(id).textContent);
  const figures = json("figures");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let printing = false;
  // Okabe and Ito's colours, told apart with any common colour vision; a shade lighter on dark ground.
  const palettes = {
    light: ["#0072b2", "#d55e00", "#009e73", "#b8558f", "#b57a00", "#2f9bd6", "#4d4d4d", "#7a5195"],
    dark: ["#4aa8e0", "#ff8a3d", "#2fc79a", "#e29ac4", "#f0b429", "#8ad0f7", "#c3c8d0", "#b794d6"],
  };

  // Points of a latency curve lie evenly on the axis 1 / (1 - q); the last one is the largest sample.
  function percentile(trace) {
    const last = trace.y.length - 1;
    const x = trace.y.map((_, k) => (k === last ? trace.meta.samples : 10 ** (k / trace.meta.perDecade)));
    const text = x.map((at, k) => (k === last ? "largest" : `${Number((100 * (1 - 1 / at)).toPrecision(7))} %`));
    return { x, text };
  }

  function styled(figure, key) {
    const scheme = dark.matches && !printing ? "dark" : "light";
    const palette = palettes[scheme];
    const ink = scheme === "dark" ? "#c6cdd8" : "#3a424e";
    const grid = scheme === "dark" ? "#2b323c" : "#e3e7ec";
    const variant = figure.variants[key];
    const narrow = innerWidth < 640;
    const axis = { tickangle: 0, gridcolor: grid, zerolinecolor: grid, linecolor: grid, automargin: true };
    const named = (own) => ({ ...axis, ...own, title: { font: { size: narrow ? 12 : 13 }, ...own.title } });
    const data = variant.data.map((trace) => {
      const colour = palette[trace.meta.colour % palette.length];
      const line = trace.line ? { ...trace.line, color: colour } : undefined;
      const marker = { ...trace.marker, color: colour };
      const error = trace.error_y ? { ...trace.error_y, color: colour } : undefined;
      const curve = trace.meta.samples ? percentile(trace) : {};
      return { ...trace, ...curve, ...(line && { line }), marker, ...(error && { error_y: error }) };
    });
    // Below the plot, with room for its lines, where it would take the width from the plot.
    const below = narrow || data.length > 14;
    const lines = Math.ceil((data.length * (narrow ? 165 : 190)) / Math.max(300, innerWidth - 160));
    const height = below ? 32 + 280 + 56 + lines * 19 : 380;
    const layout = {
      ...variant.layout,
      font: { family: "system-ui, Segoe UI, Noto Sans, DejaVu Sans, sans-serif", size: narrow ? 11 : 13, color: ink },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      margin: { l: 60, r: 12, t: 32, b: below ? 56 + lines * 19 : 48 },
      height,
      modebar: { bgcolor: "rgba(0,0,0,0)", color: grid, activecolor: ink },
      showlegend: true,
      legend: below ? { orientation: "h", yanchor: "top", y: -54 / 280, font: { size: 11 } } : {},
      hoverlabel: { align: "left" },
      xaxis: named(variant.layout.xaxis),
      yaxis: named(variant.layout.yaxis),
      annotations: [],
    };
    if (figure.simulated) {
      // Inside the figure, so that a picture taken of it says so too.
      layout.annotations.push({
        text: "SIMULATED", xref: "paper", yref: "paper", x: 0.5, y: 0.5, showarrow: false, textangle: -18,
        font: { size: narrow ? 34 : 56, color: scheme === "dark" ? "rgba(255,200,61,.15)" : "rgba(190,130,0,.16)" },
      });
    }
    return { data, layout };
  }

  const drawn = new Map();
  function draw(element, key) {
    const figure = figures[element.dataset.figure];
    const { data, layout } = styled(figure, key);
    // Named one by one, because the defaults of some versions would send the figure to a server.
    const buttons = [["toImage", "zoom2d", "pan2d", "resetScale2d"]];
    const picture = { filename: element.dataset.figure, scale: 2 };
    const options = { responsive: true, displaylogo: false, modeBarButtons: buttons, toImageButtonOptions: picture };
    drawn.set(element, key);
    Plotly.react(element.querySelector(".canvas"), data, layout, options);
    const table = element.parentElement.querySelectorAll("tr[data-instance]");
    table.forEach((row) => { row.hidden = row.dataset.instance !== key; });
  }

  function controls(element) {
    const figure = figures[element.dataset.figure];
    const chosen = figure.selectors.map((choices) => choices[0]);
    const place = element.querySelector(".choices");
    figure.selectors.forEach((choices, group) => {
      const choose = (choice) => { chosen[group] = choice; draw(element, chosen.join("|")); };
      if (choices.length < 2) return;
      if (choices.length > 5) {
        const select = document.createElement("select");
        select.setAttribute("aria-label", "instance");
        choices.forEach((choice) => select.add(new Option(Number(choice) ? `instance ${choice}` : choice, choice)));
        select.addEventListener("change", () => choose(select.value));
        place.append(select);
        return;
      }
      const box = document.createElement("div");
      choices.forEach((choice) => {
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = Number(choice) ? `instance ${choice}` : choice;
        button.setAttribute("aria-pressed", String(choice === chosen[group]));
        button.addEventListener("click", () => {
          box.querySelectorAll("button").forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
          choose(choice);
        });
        box.append(button);
      });
      place.append(box);
    });
    draw(element, chosen.join("|"));
  }

  // A page of a hundred tests draws only what is looked at.
  const watcher = new IntersectionObserver((entries) => entries.forEach((entry) => {
    if (!entry.isIntersecting) return;
    watcher.unobserve(entry.target);
    controls(entry.target);
  }), { rootMargin: "300px" });
  document.querySelectorAll("figure.plot").forEach((element) => watcher.observe(element));
  const redraw = () => drawn.forEach((key, element) => draw(element, key));
  dark.addEventListener("change", redraw);
  addEventListener("beforeprint", () => { printing = true; redraw(); });
  addEventListener("afterprint", () => { printing = false; redraw(); });

  // Tips, as text and never as markup.
  const tip = document.getElementById("tip");
  let tipped = null;
  function place() {
    tip.hidden = !tipped;
    if (!tipped) return;
    tip.textContent = tipped.dataset.tip;
    const at = tipped.getBoundingClientRect(), own = tip.getBoundingClientRect();
    const left = Math.min(Math.max(6, at.left + at.width / 2 - own.width / 2), innerWidth - own.width - 6);
    const above = at.top - own.height - 8;
    tip.style.left = `${left}px`;
    tip.style.top = `${above > 4 ? above : at.bottom + 8}px`;
  }
  ["mouseover", "focusin"].forEach((kind) => document.addEventListener(kind, (event) => {
    tipped = event.target instanceof Element ? event.target.closest("[data-tip]") : null;
    place();
  }));
  addEventListener("scroll", () => {
    // Who goes through the cells by keyboard makes the page scroll, and still wants to read.
    if (tipped && !tipped.contains(document.activeElement)) tipped = null;
    place();
  }, { passive: true });
  addEventListener("keydown", (event) => { if (event.key === "Escape") { tipped = null; place(); } });

  // The table of results: sort, filter, download.
  function listOfTests(body) {
    const rows = [...body.rows];
    const filter = document.getElementById("filter");
    const texts = new Map(rows.map((row) => [row, row.textContent.replace(/\s+/g, " ").toLowerCase()]));
    function apply() {
      const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
      let left = 0;
      rows.forEach((row) => {
        row.hidden = !words.every((word) => texts.get(row).includes(word));
        left += row.hidden ? 0 : 1;
      });
      document.getElementById("shown").textContent = `${left} of ${rows.length} tests`;
    }
    filter.addEventListener("input", () => {
      apply();
      history.replaceState(null, "", filter.value ? `#filter=${encodeURIComponent(filter.value)}` : "#results");
    });
    const heads = [...document.querySelectorAll("#list thead th")];
    function sort(head) {
      const column = heads.indexOf(head), numeric = head.dataset.sort === "number";
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const key = (row) => row.cells[column].dataset.v ?? row.cells[column].textContent.trim();
      rows.sort((one, other) => {
        const a = key(one), b = key(other);
        if (a === "" || b === "") return (a === "") - (b === "");  // what is unknown stays last either way
        return (numeric ? a - b : a.localeCompare(b, "en", { numeric: true })) * (down ? -1 : 1);
      });
      body.append(...rows);
    }
    heads.forEach((head) => {
      head.tabIndex = 0;
      head.addEventListener("click", () => sort(head));
      head.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(head); });
    });
    document.getElementById("download").addEventListener("click", () => {
      const table = json("table");
      const field = (value) => {
        const text = value === null ? "" : value === true ? "True" : value === false ? "False" : String(value);
        return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
      };
      const visible = rows.filter((row) => !row.hidden).map((row) => table.rows[Number(row.dataset.row)]);
      const unfiltered = filter.value.trim() === "";
      const lines = [table.columns, ...(unfiltered ? table.rows : visible)].map((line) => line.map(field).join(","));
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([lines.join("\n") + "\n"], { type: "text/csv" }));
      link.download = "tests.csv";
      link.click();
      URL.revokeObjectURL(link.href);
    });
    apply();
    return (text) => { filter.value = text; apply(); };
  }
  const body = document.querySelector("#list tbody");
  const filterTests = body ? listOfTests(body) : null;

  // Addresses: #test-… opens a test, #filter=… filters the table.
  function follow() {
    document.querySelectorAll(".test.target").forEach((element) => element.classList.remove("target"));
    let hash = location.hash.slice(1);
    try { hash = decodeURIComponent(hash); } catch { return; }
    if (hash.startsWith("filter=") && filterTests) {
      filterTests(hash.slice("filter=".length));
      document.getElementById("results").scrollIntoView();
      return;
    }
    const element = hash && document.getElementById(hash);
    if (!element) return;
    if (element instanceof HTMLDetailsElement) { element.open = true; element.classList.add("target"); }
    element.scrollIntoView();
  }
  addEventListener("hashchange", follow);
  follow();
  document.documentElement.dataset.ready = "yes";
})();
