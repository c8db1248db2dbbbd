// Two heat maps side by side in one colour scale, or the second against the first: any two that the page has.
{
  const place = document.getElementById("beside");
  const maps = [...document.querySelectorAll(".map[data-map]")];
  const { shades, unlike } = csit.json("heat") ?? {};
  if (place && maps.length > 1) {
    const stage = place.querySelector(".stage"), explanation = place.querySelector(".explanation");
    const state = { a: maps[0], b: maps[1], mode: "difference" };
    const dataOf = (map) => new Map([...map.querySelectorAll("tbody tr")].flatMap((row) => {
      const line = Number(row.querySelector("th").textContent);
      return [...row.querySelectorAll("td")].map((cell, k) => [`${line}x${columns(map)[k]}`, cell]);
    }));
    const columns = (map) => [...map.querySelector("thead tr:last-child").cells].slice(1).map((head) => Number(head.textContent));
    const lines = (map) => [...map.querySelectorAll("tbody th")].map((head) => Number(head.textContent));
    const merged = (one, other) => [...new Set([...one, ...other])].sort((x, y) => x - y);
    const shade = (scale, share) => shades[scale][Math.round(Math.min(1, Math.max(0, share)) * (shades[scale].length - 1))];
    const three = (value) => (value === 0 ? "0" : value.toLocaleString("en", { minimumSignificantDigits: 3, maximumSignificantDigits: 3, useGrouping: false }));
    const signed = (ratio) => {
      const size = Math.abs(ratio * 100);
      const text = size >= 10 ? size.toFixed(0) : size.toFixed(1);
      return `${Number(text) === 0 ? "" : ratio < 0 ? "−" : "+"}${text} %`;
    };

    // A map whose cells are those of both maps.
    function drawn(title, dataset, cellOf) {
      const nodes = merged(columns(state.a), columns(state.b));
      const table = csit.make("table", { class: "heat data", "data-filter": "no", "data-name": "heat-map" });
      table.append(csit.make("caption", {}, ...(dataset.simulated ? [csit.make("span", { class: "mark sim" }, "SIMULATED"), " "] : []), csit.make("b", {}, title)));
      const head = csit.make("thead");
      head.append(csit.make("tr", {}, csit.make("td", { class: "axis" }),
        csit.make("th", { class: "axis", colspan: nodes.length, scope: "colgroup" }, "NFs per service instance")));
      head.append(csit.make("tr", {}, csit.make("th", { class: "axis", scope: "col" }, "instances"),
        ...nodes.map((node) => csit.make("th", { scope: "col" }, String(node)))));
      const body = csit.make("tbody");
      merged(lines(state.a), lines(state.b)).forEach((line) => {
        body.append(csit.make("tr", {}, csit.make("th", { scope: "row" }, String(line)), ...nodes.map((node) => cellOf(`${line}x${node}`))));
      });
      table.append(head, body);
      const map = csit.make("div", { class: "map" }, table);
      Object.assign(map.dataset, dataset, { map: title });
      if (!dataset.simulated) delete map.dataset.simulated;
      return map;
    }

    function cell(text, state_, tip, value, colours, href) {
      const made = csit.make("td", { class: `c-${state_}`, "data-tip": tip, "data-v": value ?? "" });
      if (colours) [made.style.background, made.style.color] = colours;
      made.append(href ? csit.make("a", { href }, text) : csit.make("span", { tabindex: "0" }, text));
      return made;
    }
    const absent = (where) => cell("not there", "not-run", `${where}: this matrix has no such cell`);
    const known = (found) => found?.dataset.v ? Number(found.dataset.v) : null;

    function beside(map, low, top, factor, unit) {
      const own = dataOf(map);
      return drawn(map.dataset.map, { low: low / factor, top: top / factor, factor, unit, simulated: "simulated" in map.dataset ? "yes" : "" }, (where) => {
        const found = own.get(where);
        if (!found) return absent(where);
        const copy = found.cloneNode(true), value = known(found);
        copy.removeAttribute("id");
        copy.querySelectorAll("small, .to-cores").forEach((small) => small.remove());
        if (value !== null) {
          const inner = copy.querySelector("a, span");
          const sign = inner.textContent.trim().match(/^[≥<≈] /)?.[0] ?? "";
          inner.textContent = sign + three(value / factor);
          if (copy.style.background) [copy.style.background, copy.style.color] = shade("sequential", top > low ? (value - low) / (top - low) : 0.5);
        }
        return copy;
      });
    }

    // Relative change where both have a figure, and neither is a limit only.
    function against() {
      const one = dataOf(state.a), other = dataOf(state.b);
      const ratios = new Map();
      one.forEach((a, where) => {
        const b = other.get(where);
        if (a.matches(".c-value") && b?.matches(".c-value") && known(a)) ratios.set(where, known(b) / known(a) - 1);
      });
      const reach = Math.max(0.01, ...[...ratios.values()].map(Math.abs));
      const text = (found) => found.querySelector("a, span").firstChild.textContent.trim();
      const map = drawn("B against A", { scale: "diverging", low: -reach * 100, top: reach * 100, factor: 0.01, unit: "%",
        simulated: "simulated" in state.a.dataset || "simulated" in state.b.dataset ? "yes" : "" }, (where) => {
        const a = one.get(where), b = other.get(where);
        if (!a || !b) return cell(a ? "only A" : b ? "only B" : "neither", "not-run", `${where}: there is no such cell in ${a ? "B" : b ? "A" : "both"}`);
        const ratio = ratios.get(where);
        if (ratio === undefined) {
          return cell("–", "not-run", `${where}: no difference of figures\nA: ${text(a)}\nB: ${text(b)}`);
        }
        const numbers = `${where}: B is ${signed(ratio)} against A\nA ${text(a)} ${state.a.dataset.unit}\nB ${text(b)} ${state.b.dataset.unit}`;
        return cell(signed(ratio), "value", numbers, ratio, shade("diverging", 0.5 + ratio / reach / 2), b.querySelector("a")?.getAttribute("href"));
      });
      const colours = shades.diverging.filter((_, k) => k % 7 === 0).map(([background]) => background).join(", ");
      return { map, low: signed(-reach), high: signed(reach), colours, count: ratios.size };
    }

    function scale(low, high, colours) {
      const strip = csit.make("i");
      strip.style.background = `linear-gradient(to right, ${colours})`;
      return csit.make("div", { class: "scale" }, csit.make("span", {}, low), strip, csit.make("span", {}, high));
    }

    function show() {
      stage.replaceChildren();
      explanation.replaceChildren();
      const { a, b } = state, kinds = [a.dataset.kind, b.dataset.kind].join("|");
      const found = a.dataset.metric === b.dataset.metric ? unlike[a.dataset.metric]?.[kinds] : { differences: ["they are different metrics"], remarks: [] };
      const { differences = [], remarks = [] } = found ?? {};
      if (differences.length) {
        explanation.append(csit.make("p", { class: "warn bad" }, csit.make("b", {}, "Not comparable: "), `${differences.join("; ")}.`));
      }
      remarks.forEach((remark) => explanation.append(csit.make("p", { class: "note" }, `${remark[0].toUpperCase()}${remark.slice(1)}.`)));
      const top = Math.max(Number(a.dataset.top) * a.dataset.factor, Number(b.dataset.top) * b.dataset.factor);
      const low = Math.min(Number(a.dataset.low) * a.dataset.factor, Number(b.dataset.low) * b.dataset.factor);
      const [factor, unit] = Number(a.dataset.factor) > Number(b.dataset.factor) ? [Number(a.dataset.factor), a.dataset.unit] : [Number(b.dataset.factor), b.dataset.unit];
      const wanted = [];
      if (state.mode === "difference" && differences.length) {
        explanation.append(csit.make("p", {}, "No difference is shown; the maps can be viewed side by side."));
      } else if (state.mode === "difference") {
        const made = against();
        explanation.append(scale(made.low, made.high, made.colours),
          csit.make("p", { class: "note" }, `${made.count} cells have a figure in both. Orange is less in B, blue is more.`));
        wanted.push(made.map);
      } else {
        const colours = shades.sequential.filter((_, k) => k % 7 === 0).map(([background]) => background).join(", ");
        explanation.append(scale(three(low / factor), `${three(top / factor)} ${unit}`, colours));
        wanted.push(beside(a, low, top, factor, unit), beside(b, low, top, factor, unit));
      }
      stage.style.setProperty("--columns", merged(columns(a), columns(b)).length);
      wanted.forEach((map, k) => {
        map.id = `beside-${k}`;
        stage.append(map);
        csit.equip(map.querySelector("table"));
        csit.mapPictures(map);
      });
    }

    const MODES = ["difference", "side by side"], PREFIX = "#beside=";
    const bar = place.querySelector(".choices");
    // What is chosen is the page's address, and so is what was chosen before.
    function change(chosen) {
      Object.assign(state, chosen);
      const address = [PREFIX + state.mode.replaceAll(" ", "-"), state.a.id, state.b.id].join("/");
      if (address !== location.hash) history.pushState(null, "", address);
      show();
    }
    const choose = (side) => {
      const select = csit.make("select", { "aria-label": `map ${side.toUpperCase()}` });
      maps.forEach((map, k) => select.add(new Option(map.dataset.map, k, false, map === state[side])));
      select.addEventListener("change", () => change({ [side]: maps[select.value] }));
      return csit.make("label", {}, `${side.toUpperCase()} `, select);
    };
    const offer = () => bar.replaceChildren(csit.choice("", MODES, state.mode, (mode) => change({ mode })), choose("a"), choose("b"));
    // At first two of the same metric.
    state.b = maps.find((map) => map !== state.a && map.dataset.metric === state.a.dataset.metric) ?? maps[1];
    const first = { ...state };
    offer();
    place.hidden = false;
    csit.addresses.beside = (text) => {
      const [word, ...ids] = text.split("/"), mode = MODES.find((each) => each.replaceAll(" ", "-") === word);
      const [a, b] = ids.map((id) => maps.find((map) => map.id === id));
      if (!mode || !a || !b) return;
      Object.assign(state, { mode, a, b });
      offer();
      show();
      place.scrollIntoView();
    };
    addEventListener("hashchange", () => {
      if (location.hash.startsWith(PREFIX)) return;
      Object.assign(state, first);
      offer();
      show();
    });
    // Only when it is looked at: a page opens without it.
    new IntersectionObserver((entries, watcher) => {
      if (entries.some((entry) => entry.isIntersecting)) { watcher.disconnect(); show(); }
    }, { rootMargin: "300px" }).observe(place);
  }
}
