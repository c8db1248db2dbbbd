// The compare page: the reader chooses what is A and what is B; all of it is computed here (`comparison.js`).
if (document.getElementById("compare-data")) {
  const data = csit.json("compare-data");
  const form = document.getElementById("compare-form"), result = document.getElementById("compare-result");
  const MOST = 4, LETTERS = "ABCD", PALE = 0.2;
  const sides = new Map(data.sides.map(([kind, name, runs]) => [name, { kind, name, runs }]));
  const state = { names: [], insist: false, metric: null };

  const percent = (ratio) => {
    if (!Number.isFinite(ratio)) return "–";
    const size = Math.abs(ratio * 100), text = size.toFixed(size >= 10 ? 0 : 1);
    return `${Number(text) === 0 ? "" : ratio < 0 ? "−" : "+"}${text} %`;
  };
  const rate = (value) => {
    const [factor, unit] = [[1e9, "Gpps"], [1e6, "Mpps"], [1e3, "kpps"]].find(([size]) => Math.abs(value) >= size * 0.9995) ?? [1, "pps"];
    return `${Number((value / factor).toPrecision(3)).toLocaleString("en", { minimumSignificantDigits: 3, maximumSignificantDigits: 3, useGrouping: false })} ${unit}`;
  };
  // Of a figure of this cell: a packet rate, or what its workload is counted in.
  const amount = (cell, value) => (cell.x === undefined ? rate(value) : `${Number(value.toPrecision(3))} ${cell.x}`.trim());
  const simulated = (runs) => runs.some((run) => data.runs[run][2]);
  const mark = () => csit.make("span", { class: "mark sim" }, "SIMULATED");
  const named = (at) => sides.get(state.names[at]);
  const significant = (change) => ["regression", "progression", "lower than A", "higher than A"].includes(change.outcome);

  // The form.
  function choice(at) {
    const select = csit.make("select", { "aria-label": `side ${LETTERS[at]}` });
    const groups = { testbed: "Testbeds", "runs before": "Baselines", label: "Releases", version: "Versions", run: "Runs" };
    Object.entries(groups).forEach(([kind, label]) => {
      const own = [...sides.values()].filter((side) => side.kind === kind);
      if (!own.length) return;
      const group = csit.make("optgroup", { label });
      own.forEach((side) => group.append(new Option(side.name, side.name, false, side.name === state.names[at])));
      select.append(group);
    });
    select.addEventListener("change", () => { state.names[at] = select.value; changed(); });
    return csit.make("label", {}, at ? `${LETTERS[at]} ` : "A, the baseline ", select);
  }
  function fillForm() {
    const insist = csit.make("input", { type: "checkbox", id: "insist" });
    insist.checked = state.insist;
    insist.addEventListener("change", () => { state.insist = insist.checked; changed(); });
    const swap = csit.button("⇄ swap", "Swap A and B", () => { [state.names[0], state.names[1]] = [state.names[1], state.names[0]]; changed(); });
    const tools = [swap];
    if (state.names.length < MOST) tools.push(csit.button("+ one more", "Compare one more with A", () => {
      state.names.push([...sides.keys()].find((name) => !state.names.includes(name)) ?? state.names[0]); changed();
    }));
    if (state.names.length > 2) tools.push(csit.button("− one less", "Leave out the last", () => { state.names.pop(); changed(); }));
    form.replaceChildren(...state.names.map((_, at) => choice(at)), csit.make("div", {}, ...tools), csit.make("label", {}, insist, " compare unlike figures as well"));
    form.hidden = false;
  }
  function changed() {
    const parts = state.names.map((name, at) => `${at ? "with" : "compare"}=${encodeURIComponent(name)}`);
    history.replaceState(null, "", `#${parts.join("&")}${state.insist ? "&insist=yes" : ""}`);
    show();
  }

  // The table: a line per cell of A, columns per other side.
  function table(found) {
    const heads = [["cell", "text"], ["metric", "text"], ["A mean", "number", "a_mean_pps"], ["A stdev", "number", "a_stdev_pps"], ["A n", "number", "a_runs"]];
    found.forEach((_, k) => {
      const letter = LETTERS[k + 1], small = letter.toLowerCase();
      heads.push([`${letter} mean`, "number", `${small}_mean_pps`], [`${letter} stdev`, "number", `${small}_stdev_pps`], [`${letter} n`, "number", `${small}_runs`],
        ["change", "number", `${small}_change`], ["interval", "number", `${small}_interval`], ["verdict", "text", `${small}_verdict`]);
    });
    const made = csit.make("table", { class: "data plain", "data-name": `compare-${state.names.join("-with-")}`.replace(/[^\w.-]+/g, "-"), "data-rows": "cells", "data-example": "csc 4x2 regression" });
    const row = csit.make("tr");
    heads.forEach(([text, sort, head]) => {
      const cell = csit.make("th", { "data-sort": sort, ...(sort === "number" && { class: "num" }) }, text);
      if (head) cell.dataset.head = head;
      row.append(cell);
    });
    const body = csit.make("tbody");
    lines(found).forEach((line) => body.append(tableRow(line)));
    made.append(csit.make("thead", {}, row), body);
    return made;
  }
  // Lines by cell: A's figure and what each other side has against it.
  function lines(found) {
    const all = new Map();
    found.forEach((one, at) => one.changes.forEach((change) => {
      const key = `${data.cells.indexOf(change.a.cell)}`;
      if (!all.has(key)) all.set(key, { a: change.a, others: found.map(() => null) });
      const own = all.get(key);
      if (own.others[at]) { all.set(`${key}+${data.cells.indexOf(change.b.cell)}`, { a: change.a, others: found.map((_, k) => (k === at ? change : null)) }); } else own.others[at] = change;
    }));
    return [...all.values()];
  }
  const number = (text, value) => csit.make("td", { class: "num", "data-v": value === null || !Number.isFinite(value) ? "" : String(value) }, text);
  const sideCells = (own) => [number(amount(own.cell, own.mean), own.mean), number(own.stdev === null ? "–" : amount(own.cell, own.stdev), own.stdev), number(String(own.n), own.n)];
  function tableRow({ a, others }) {
    const here = document.getElementById(a.cell.l), elsewhere = document.querySelector('nav.page a[href$="trend.html"]');
    const name = a.cell.l && (here || elsewhere) ? csit.make("a", { href: `${here ? "" : "trend.html"}#${a.cell.l}` }, a.cell.c) : a.cell.c;
    const row = csit.make("tr", {}, csit.make("td", {}, name), csit.make("td", {}, data.metrics[a.cell.m]), ...sideCells(a));
    others.forEach((change) => {
      if (!change) { row.append(...Array.from({ length: 6 }, () => csit.make("td", { "data-v": "" }, "–"))); return; }
      const refused = change.outcome === "unlike";
      const interval = `${percent(change.low)} … ${percent(change.high)}`;
      const title = [how(change), ...change.remarks].join("\n");
      const verdict = csit.make("span", { class: `outcome ${change.outcome.replaceAll(" ", "-")}`, "data-tip": title, tabindex: "0" }, change.outcome);
      row.append(...sideCells(change.b), number(refused ? "–" : percent(change.change), refused ? null : change.change),
        csit.make("td", { class: "num", "data-v": refused ? "" : `${change.low} … ${change.high}` }, refused ? "–" : interval), csit.make("td", { "data-v": change.outcome }, verdict));
    });
    return row;
  }
  const HOW = {
    runs: "Means of several runs, by Welch's t-test.",
    "one run against several": "One run against several: it is assumed to vary like them.",
    "spread over cells": "One run on both sides: the noise is estimated from the spread of changes over the matrix.",
  };
  function how(change) {
    if (change.method === "bounds") return "One run on both sides: only their bounds are known, not the noise between runs.";
    const adjusted = change.adjusted === undefined ? "" : `, ${change.adjusted.toPrecision(2)} with all cells judged together`;
    const chance = change.probability === null ? "" : ` Chance of such a difference between equal systems: ${change.probability.toPrecision(2)}${adjusted}.`;
    return `${HOW[change.method]}${chance}`;
  }

  // Heat maps of the change from A to B, one per service type and sizes. Characterizations are no matrix.
  function maps(every) {
    const one = { changes: every.changes.filter((change) => change.a.cell.m < data.of_matrix) };
    const place = result.querySelector(".compare-maps"), bar = result.querySelector(".map-choices");
    const metrics = [...new Set(one.changes.map((change) => change.a.cell.m))].sort();
    if (!metrics.includes(state.metric)) state.metric = metrics[0];
    // Significant changes span the scale, which is never so narrow that noise has strong colours.
    const reach = Math.max(0.1, ...one.changes.filter((change) => significant(change) && Number.isFinite(change.change)).map((change) => Math.abs(change.change)));
    bar.replaceChildren();
    if (metrics.length) bar.append(csit.make("div", { class: "choices" }, csit.choice("", metrics.map((metric) => data.metrics[metric]), data.metrics[state.metric], (chosen) => { state.metric = data.metrics.indexOf(chosen); maps(one); })), legend(reach));
    const own = one.changes.filter((change) => change.a.cell.m === state.metric);
    const groups = new Map();
    own.forEach((change) => {
      const name = change.a.cell.c.replace(/ \d+x\d+/, "");
      groups.set(name, [...(groups.get(name) ?? []), change]);
    });
    const widest = Math.max(1, ...[...groups.values()].map((group) => new Set(group.map((change) => change.a.cell.n)).size));
    place.style.setProperty("--columns", widest);
    place.replaceChildren(...[...groups].map(([name, group]) => map(name, group, reach)));
    [...place.children].forEach((box) => { csit.equip(box.querySelector("table")); csit.mapPictures(box); });
  }
  function legend(reach) {
    const strip = csit.make("i");
    strip.style.background = `linear-gradient(to right, ${data.shades.filter((_, k) => k % 7 === 0).map(([colour]) => colour).join(", ")})`;
    return csit.make("div", { class: "scale" }, csit.make("span", {}, percent(-reach)), strip, csit.make("span", {}, percent(reach)));
  }
  function map(name, group, reach) {
    const unique = (values) => [...new Set(values)].sort((x, y) => x - y);
    const services = unique(group.map((change) => change.a.cell.s)), nodes = unique(group.map((change) => change.a.cell.n));
    const made = csit.make("table", { class: "heat data", "data-filter": "no", "data-name": `difference-${name}`.replace(/\W+/g, "-") });
    const title = `${name} ${data.metrics[state.metric]}`;
    const runs = [...named(0).runs, ...named(1).runs];
    made.append(csit.make("caption", {}, ...(simulated(runs) ? [mark(), " "] : []), csit.make("b", {}, title), " B against A"),
      csit.make("thead", {}, csit.make("tr", {}, csit.make("td", { class: "axis" }), csit.make("th", { class: "axis", colspan: nodes.length }, "NFs per service instance")),
        csit.make("tr", {}, csit.make("th", { class: "axis" }, "instances"), ...nodes.map((node) => csit.make("th", { scope: "col" }, String(node))))));
    const body = csit.make("tbody");
    services.forEach((line) => body.append(csit.make("tr", {}, csit.make("th", { scope: "row" }, String(line)), ...nodes.map((node) => {
      const change = group.find((each) => each.a.cell.s === line && each.a.cell.n === node);
      return heatCell(change, `${line}x${node}`, reach);
    }))));
    made.append(body);
    const box = csit.make("div", { class: "map" }, made);
    Object.assign(box.dataset, { map: `${title}: ${state.names[1]} against ${state.names[0]}`, scale: "diverging", low: -reach * 100, top: reach * 100, factor: 0.01, unit: "%" });
    if (simulated(runs)) box.dataset.simulated = "yes";
    return box;
  }
  function heatCell(change, where, reach) {
    const refused = !change || change.outcome === "unlike";
    const sure = change && significant(change);
    const cell = csit.make("td", { class: refused ? "c-not-run" : `c-value${sure ? "" : " quiet"}`, "data-v": refused ? "" : change.change });
    const sign = sure ? (change.change < 0 ? "▼" : "▲") : "";
    const text = !change ? "–" : refused ? "unlike" : sign + percent(change.change);
    cell.dataset.tip = change ? `${where}: ${change.outcome}\nA ${amount(change.a.cell, change.a.mean)}, B ${amount(change.b.cell, change.b.mean)}\n${refused ? "" : `${percent(change.low)} … ${percent(change.high)}\n`}${[how(change), ...change.remarks].join("\n")}` : `${where}: not in both`;
    if (!refused) [cell.style.background, cell.style.color] = data.shades[Math.round(Math.min(1, Math.max(0, 0.5 + (change.change / reach / 2) * (sure ? 1 : PALE))) * (data.shades.length - 1))];
    cell.append(csit.make("span", { tabindex: "0" }, text));
    return cell;
  }

  // What differs between the environments of A and B.
  function apart() {
    const box = result.querySelector(".apart"), env = data.environments;
    const known = (at) => [...new Set(named(at).runs.flatMap((run) => data.runs[run][1]))];
    box.hidden = !env || !known(0).length || !known(1).length;
    if (box.hidden) return;
    const texts = (at, name) => [...new Set(known(at).map((row) => (env.rows[row][name] < 0 ? "–" : env.texts[env.rows[row][name]])))].join(" | ");
    const differs = env.names.map((name, k) => [name, texts(0, k), texts(1, k)]).filter(([, a, b]) => a !== b);
    box.querySelector("summary").textContent = differs.length
      ? `What else differs between A and B: ${differs.slice(0, 3).map(([name]) => name).join(", ")}${differs.length > 3 ? ` and ${differs.length - 3} more` : ""}`
      : "The recorded environments are identical";
    const made = csit.make("table", { class: "plain wrap" }, csit.make("thead", {}, csit.make("tr", {}, ...["", "A", "B"].map((text) => csit.make("th", {}, text)))));
    const body = csit.make("tbody");
    differs.slice(0, 40).forEach(([name, a, b]) => body.append(csit.make("tr", {}, csit.make("th", { scope: "row" }, name), csit.make("td", {}, a), csit.make("td", {}, b))));
    made.append(body);
    box.querySelector(".scroll").replaceChildren(made);
  }

  function say(found) {
    const place = result.querySelector(".words");
    place.replaceChildren();
    found.forEach((one, at) => {
      const count = (outcome) => one.changes.filter((change) => change.outcome === outcome).length;
      const all = one.changes.length, same = all && count("no change seen") === all;
      const words = same ? [`no change seen in any of ${all} cells`] : ["regression", "progression", "lower than A", "higher than A", "no change seen", "cannot tell", "unlike"].filter(count).map((outcome) => `${count(outcome)} ${outcome}`);
      const alone = [[one.onlyA, "A"], [one.onlyB, LETTERS[at + 1]]].filter(([cells]) => cells.length).map(([cells, letter]) => `${cells.length} in ${letter} only`);
      place.append(csit.make("p", {}, csit.make("b", {}, `${LETTERS[at + 1]} against A: `), `${[...(all ? words : ["no cell in common"]), ...alone].join(", ")}.`));
      const differences = [...new Set(one.changes.flatMap((change) => change.differences))];
      if (differences.length) place.append(csit.make("p", { class: "warn bad" },
        csit.make("b", {}, state.insist ? "Compared on request, although the definitions differ: " : "Not compared, because the definitions differ: "), `${differences.join("; ").replaceAll(" in B", ` in ${LETTERS[at + 1]}`)}.`));
      const bounds = one.changes.some((change) => change.method === "bounds");
      if (bounds) place.append(csit.make("p", { class: "note" }, "One run on both sides: bounds that are apart by more than 1 % differ, but the noise between runs is unknown. Compare several runs to know more."));
    });
  }

  function show() {
    fillForm();
    const a = named(0);
    const found = state.names.slice(1).map((_, k) => csit.compare(data, a.runs, named(k + 1).runs, state.insist));
    const title = result.querySelector("h2");
    title.replaceChildren(...(simulated(state.names.flatMap((_, k) => named(k).runs)) ? [mark(), " "] : []), state.names.map((name, k) => `${LETTERS[k]}: ${name}`).join(" · "));
    say(found);
    apart();
    maps(found[0]);
    const place = result.querySelector(".result"), made = table(found);
    const scroll = csit.make("div", { class: "scroll" }, made);
    place.replaceChildren(scroll);
    csit.equip(made);
    const cells = result.querySelector(".cells"), changes = found.flatMap((one) => one.changes);
    cells.open = changes.some(significant);
    cells.hidden = !changes.length;
    cells.querySelector("summary").textContent = `Cells (${changes.length})`;
    result.hidden = false;
  }

  function follow() {
    const asked = new URLSearchParams(location.hash.slice(1));
    const names = [asked.get("compare"), ...asked.getAll("with")].filter((name) => name !== null && sides.has(name));
    if (asked.get("compare") !== null && names.length > 1) {
      Object.assign(state, { names: names.slice(0, MOST), insist: asked.get("insist") === "yes" });
      show();
      result.scrollIntoView();
    }
  }
  addEventListener("hashchange", follow);
  follow();
  if (!state.names.length) {
    const first = new URLSearchParams(document.querySelector("#compare-choice table a")?.getAttribute("href").slice(1) ?? "");
    const every = [...sides.keys()];
    state.names = [first.get("compare") ?? every[1], first.get("with") ?? every[0]];
    new IntersectionObserver((entries, watcher) => {
      if (entries.some((entry) => entry.isIntersecting)) { watcher.disconnect(); if (result.hidden) show(); }
    }, { rootMargin: "300px" }).observe(document.getElementById("compare-choice"));
  }
}
