// Plots. A figure (`figures.Figure`) says colours as numbers of the palette; here they become those of the scheme.
{
  // Okabe and Ito's colours, distinguishable with common colour vision deficiencies; lighter on a dark background.
  const palettes = {
    light: ["#0072b2", "#d55e00", "#009e73", "#b8558f", "#b57a00", "#2f9bd6", "#4d4d4d", "#7a5195"],
    dark: ["#4aa8e0", "#ff8a3d", "#2fc79a", "#e29ac4", "#f0b429", "#8ad0f7", "#c3c8d0", "#b794d6"],
  };
  const inks = {
    light: { ink: "#3a424e", dim: "#5b6675", grid: "#e3e7ec", paper: "#ffffff", water: "rgba(190,130,0,.16)" },
    dark: { ink: "#c6cdd8", dim: "#9aa5b4", grid: "#2b323c", paper: "#171b21", water: "rgba(255,200,61,.15)" },
  };
  // From less to more through a neutral middle; the ends differ in hue and are equally dark.
  const diverging = [[0, "#b35806"], [0.25, "#f1a340"], [0.5, "#f3f3f3"], [0.75, "#67a9cf"], [1, "#2166ac"]];
  const { figures } = csit;
  let printing = false;
  const PRINTED_PX = { wide: 275, narrow: 205 }; // two plots on a page, or two rows of three

  // Points of a latency curve lie evenly on the axis 1 / (1 - q); the last one is the largest sample.
  function percentile(trace) {
    const last = trace.y.length - 1;
    const x = trace.y.map((_, k) => (k === last ? trace.meta.samples : 10 ** (k / trace.meta.perDecade)));
    const text = x.map((at, k) => (k === last ? "largest" : `${Number((100 * (1 - 1 / at)).toPrecision(7))} %`));
    return { x, text };
  }

  // A colour: a number of the palette, a word of `inks`, or a colour that stays as it is.
  const tint = (scheme, colour) => (typeof colour === "number"
    ? palettes[scheme][colour % palettes[scheme].length] : inks[scheme][colour] ?? colour);

  function coloured(trace, scheme) {
    const meta = trace.meta ?? {};
    if (trace.type === "heatmap") {
      const bar = { outlinewidth: 0, thickness: 12, tickfont: { color: inks[scheme].ink }, ...trace.colorbar };
      const colorscale = meta.scale === "diverging" ? diverging : "Cividis";
      return { xgap: 2, ygap: 2, hoverongaps: false, ...trace, colorscale, colorbar: bar };
    }
    const colour = tint(scheme, meta.colour ?? 0);
    const own = { marker: { ...trace.marker, color: trace.marker?.color ?? colour } };
    if (trace.line || trace.type === "box") own.line = { ...trace.line, color: colour };
    if (trace.type === "box") own.fillcolor = `${colour}33`;
    if (trace.error_y) own.error_y = { ...trace.error_y, color: trace.type === "bar" ? inks[scheme].ink : colour };
    return { ...trace, ...(meta.samples ? percentile(trace) : {}), ...own };
  }

  // Longest name in a legend beside the plot, from which a longer one would take the width.
  const MAX_NAME = 30;
  // A longer name in lines, for a narrow plot.
  const inLines = (name) => name?.replace(/(.{20,}?), /g, "$1,<br>");

  // Some of the traces, where there are more than a plot can show: `facets` names what readers narrow by.
  const fits = (trace, narrowed) => Object.entries(narrowed)
    .every(([name, value]) => value === "all" || (trace.meta.facets?.[name] ?? value) === value);

  // Whether a trace has anything to draw: what was not measured gets no line, and no entry in the legend.
  const known = (trace) => trace.type === "heatmap" || (trace.y ?? []).some((value) => value !== null && value !== undefined);

  // Plots beside each other, as `figures.side_by_side` makes them, are below each other where there is little room.
  function piled(variant) {
    const { annotations, meta, ...layout } = variant.layout;
    const ends = Object.keys(layout).filter((name) => name.startsWith("xaxis")).map((name) => name.slice(5));
    const { title } = layout.xaxis, share = 1.12 / ends.length;
    ends.forEach((end, at) => {
      layout[`xaxis${end}`] = { ...layout[`xaxis${end}`], domain: [0, 1], title: at < ends.length - 1 ? {} : title };
      layout[`yaxis${end}`] = { ...layout.yaxis, ...(at && { matches: "y" }), anchor: `x${end}`, domain: [Math.max(0, 1 - (at + 1) * share + 0.12), 1 - at * share] };
    });
    return { ...variant, layout: { ...layout, height: 100 + 190 * ends.length,
      annotations: annotations.map((name, at) => ({ ...name, x: 0.5, y: 1 - at * share })) } };
  }

  function styled(figure, key, narrowed, scheme, wide) {
    const { ink, grid, water } = inks[scheme];
    const narrow = wide < 640;
    const variant = narrow && figure.variants[key].layout.xaxis2 ? piled(figure.variants[key]) : figure.variants[key];
    const axis = { tickangle: 0, gridcolor: grid, zerolinecolor: grid, linecolor: grid, automargin: true };
    const named = (own) => ({ ...axis, ...own, title: { font: { size: narrow ? 12 : 13 }, ...own?.title } });
    const data = variant.data.filter((trace) => known(trace) && fits(trace, narrowed))
      .map((trace) => coloured(narrow ? { ...trace, name: inLines(trace.name) } : trace, scheme));
    // All axes of the variant: panels of one figure have a vertical axis each.
    const names = new Set(["xaxis", "yaxis", ...Object.keys(variant.layout).filter((name) => /^[xy]axis\d+$/.test(name))]);
    const axes = Object.fromEntries([...names].map((name) => [name, named(variant.layout[name])]));
    const marks = (list) => (list ?? []).map((mark) => ({
      ...mark,
      ...(mark.line && { line: { ...mark.line, color: tint(scheme, mark.line.color ?? "dim") } }),
      ...(mark.fillcolor !== undefined && { fillcolor: tint(scheme, mark.fillcolor) }),
      ...(mark.font && { font: { ...mark.font, color: tint(scheme, mark.font.color ?? "dim") } }),
    }));
    // The legend is below the plot, with room for its lines, where it would take the width from the plot.
    const listed = data.filter((trace) => trace.showlegend !== false && trace.type !== "heatmap");
    const legends = listed.length, written = listed.map((trace) => (trace.name ?? "").split("<br>"));
    const longest = Math.max(0, ...written.flat().map((line) => line.length));
    const below = legends > 0 && (narrow || legends > 14 || longest > MAX_NAME);
    const lines = below ? Math.ceil((legends * (45 + 6.5 * longest)) / Math.max(300, wide - 110)) : 0;
    const linesPx = lines * (6 + 13 * Math.max(1, ...written.map((name) => name.length)));
    // Texts above the plot are below the buttons of the library.
    const top = (variant.layout.annotations ?? []).some((note) => note.yref === "paper" && note.y === 1) ? 56 : 32;
    const inner = (variant.layout.height ?? (printing ? PRINTED_PX[narrow ? "narrow" : "wide"] : 380)) - 100 + top - 32;
    const layout = {
      ...variant.layout,
      font: { family: "system-ui, Segoe UI, Noto Sans, DejaVu Sans, sans-serif", size: narrow ? 11 : 13, color: ink },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      margin: { l: 60, r: 12, t: top, b: below ? 56 + linesPx : 48 },
      height: below ? 88 + inner + linesPx : inner + 100,
      modebar: { bgcolor: "rgba(0,0,0,0)", color: grid, activecolor: ink },
      showlegend: legends > 0,
      legend: below ? { orientation: "h", yref: "container", yanchor: "bottom", y: 0, font: { size: 11 } } : {},
      hoverlabel: { align: "left" },
      ...axes,
      shapes: marks(variant.layout.shapes),
      annotations: marks(variant.layout.annotations),
    };
    if (!data.length) {
      layout.annotations.push({ text: "not measured", xref: "paper", yref: "paper", x: 0.5, y: 0.5, showarrow: false, font: { size: 14, color: inks[scheme].dim } });
    }
    if (figure.simulated && data.length) {
      // Inside the figure, so that a picture taken of it says so too.
      layout.annotations.push({
        text: "SIMULATED", xref: "paper", yref: "paper", x: 0.5, y: 0.5, showarrow: false, textangle: -18,
        font: { size: narrow ? 34 : 56, color: water },
      });
    }
    return { data, layout };
  }

  // A picture for papers: light, on white, with its title inside, whatever the page looks like.
  csit.picture = async (figure, key, name, format, narrowed = {}) => {
    const library = await csit.plotly();
    const { data, layout } = styled(figure, key, narrowed, "light", 1000);
    const title = { text: figure.title, font: { size: 16, color: "#14181f" }, x: 0.02, xanchor: "left" };
    const paper = { ...layout, title, paper_bgcolor: "#ffffff", plot_bgcolor: "#ffffff", width: 1000 };
    paper.margin = { ...layout.margin, t: 56 };
    paper.height = layout.height + 24;
    const options = { format, width: paper.width, height: paper.height, scale: format === "png" ? 2 : 1 };
    const url = await library.toImage({ data, layout: paper, config: { staticPlot: true } }, options);
    csit.save(`${name}.${format}`, url);
  };

  const drawn = new Map();
  async function draw(element) {
    const { key, narrowed } = drawn.get(element);
    const library = await csit.plotly();
    const canvas = element.querySelector(".canvas");
    const scheme = printing ? "light" : csit.scheme();
    const figure = figures[element.dataset.figure];
    const { data, layout } = styled(figure, key, narrowed, scheme, element.clientWidth || innerWidth);
    // Paper has the choices in the title.
    const chosen = key.split("|").filter((_, group) => figure.selectors[group]?.length > 1);
    element.querySelector(".title")?.setAttribute("data-chosen", chosen.map((choice) => `, ${choice}`).join(""));
    // Named one by one, because the defaults of some versions would send the figure to a server.
    const options = { responsive: true, displaylogo: false, modeBarButtons: [["zoom2d", "pan2d", "resetScale2d"]] };
    // Where many things stand side by side, the plot is wider than a small window, which scrolls it.
    canvas.style.minWidth = `${printing ? 0 : layout.meta?.width ?? 0}px`;
    library.react(canvas, data, layout, options);
    const table = element.parentElement.querySelectorAll("tr[data-instance]");
    table.forEach((row) => { row.hidden = row.dataset.instance !== key; });
  }

  const spoken = (choice) => (Number(choice) ? `instance ${choice}` : choice);

  // Buttons for few and short choices, a list for others.
  csit.choice = (label, choices, chosen, choose) => {
    if (choices.length > 5 || choices.join("").length > 70 || label) {
      const select = csit.make("select", { "aria-label": label || "instance" });
      choices.forEach((choice) => select.add(new Option(spoken(choice), choice, false, choice === chosen)));
      select.addEventListener("change", () => choose(select.value));
      return label ? csit.make("label", {}, `${label} `, select) : select;
    }
    const box = csit.make("div");
    choices.forEach((choice) => {
      const button = csit.button(spoken(choice), spoken(choice), () => {
        box.querySelectorAll("button").forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
        choose(choice);
      });
      button.setAttribute("aria-pressed", String(choice === chosen));
      box.append(button);
    });
    return box;
  };

  // Filters, and their initial values, so that lines can be distinguished.
  const MAX_LINES = 18;
  function facets(figure, key) {
    const narrowed = {}, values = {};
    const traces = figure.variants[key].data;
    for (const name of figure.facets) {
      values[name] = [...new Set(Object.values(figure.variants).flatMap((variant) => variant.data)
        .map((trace) => trace.meta.facets?.[name]).filter((value) => value !== undefined))];
      if (values[name].length < 2) { delete values[name]; continue; }
      narrowed[name] = "all";
    }
    for (const name of Object.keys(narrowed).reverse()) {
      if (traces.filter((trace) => fits(trace, narrowed)).length > MAX_LINES) [narrowed[name]] = values[name];
    }
    return { narrowed, values };
  }

  function controls(element) {
    const name = element.dataset.figure, figure = figures[name];
    const chosen = figure.selectors.map((choices) => choices[0]);
    const place = element.querySelector(".choices");
    const { narrowed, values } = facets(figure, chosen.join("|"));
    const state = { key: chosen.join("|"), narrowed };
    drawn.set(element, state);
    figure.selectors.forEach((choices, group) => {
      const choose = (choice) => { chosen[group] = choice; state.key = chosen.join("|"); draw(element); };
      if (choices.length > 1) place.append(csit.choice("", choices, chosen[group], choose));
    });
    Object.entries(values).forEach(([facet, found]) => {
      const choose = (choice) => { narrowed[facet] = choice; draw(element); };
      place.append(csit.choice(facet, ["all", ...found], narrowed[facet], choose));
    });
    const pictures = csit.make("div", { class: "pictures" });
    ["svg", "png"].forEach((format) => pictures.append(csit.button(format.toUpperCase(),
      `Save as ${format.toUpperCase()}`, () => csit.picture(figure, state.key, name, format, narrowed))));
    place.append(pictures);
    return draw(element);
  }

  // A page of a hundred tests draws only what is looked at.
  const watcher = new IntersectionObserver((entries) => entries.forEach((entry) => {
    if (!entry.isIntersecting) return;
    watcher.unobserve(entry.target);
    csit.idle(() => { if (!drawn.has(entry.target)) controls(entry.target); });
  }), { rootMargin: "300px" });
  // Paper shows all of the page: what was not looked at is drawn before it is printed.
  function drawAll() {
    document.querySelectorAll("figure.plot").forEach((element) => {
      if (drawn.has(element) || !element.offsetParent) return;
      watcher.unobserve(element);
      controls(element);
    });
  }
  // A browser without a window prints when the page is loaded, so it waits for the library; with a window it comes later.
  if (document.querySelector("figure.plot")) {
    if (/Headless/.test(navigator.userAgent)) csit.plotly();
    else addEventListener("load", () => setTimeout(() => csit.idle(csit.plotly), 3000));
  }
  csit.onContent((root) => csit.all(root, "figure.plot").forEach((element) => watcher.observe(element)));
  // A figure that a page's script makes, in the place of the one that was there; done when it is drawn.
  csit.plot = (element, figure) => {
    watcher.unobserve(element);
    figures[element.dataset.figure] = figure;
    element.querySelector(".choices").replaceChildren();
    return controls(element);
  };
  const redraw = () => drawn.forEach((_, element) => draw(element));
  csit.onScheme(redraw);
  // Width of a page whose plots are as wide as on A4 paper, landscape. No event tells when the paper is laid out.
  const PAPER_PX = 1070;
  function print(begins) {
    printing = begins;
    document.documentElement.classList.toggle("printing", begins); // the media query matches only later
    document.body.style.width = begins ? `${PAPER_PX}px` : "";
    // A plot that is there keeps its width when it is drawn again.
    drawn.forEach((_, element) => window.Plotly?.purge(element.querySelector(".canvas")));
    redraw();
  }
  addEventListener("beforeprint", () => { print(true); drawAll(); });
  addEventListener("afterprint", () => print(false));
}
