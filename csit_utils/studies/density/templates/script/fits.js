// "How many service instances fit?": rate and latency become inputs. The answers are those of `./csit answer`: from measurements
// only, and what is met or missed at a load is so for all lower or higher loads; see `analysis/answers.py`.
{
  const data = csit.json("fits");
  const EQUAL = 1 + 1e-9;

  // Highest load at which p99 is below a bound, and lowest at which it is not, over the tests of a cell: a miss below a
  // load that the same test met is noise.
  const timely = (runs, bound) => {
    const mets = [], misses = [];
    runs.forEach((points) => {
      const met = points.filter(([, p99]) => p99 !== null && p99 < bound).map(([load]) => load);
      mets.push(...met);
      const late = points.filter(([, p99]) => p99 === null || p99 >= bound).map(([load]) => load);
      misses.push(...late.filter((load) => load > Math.max(-1, ...met)));
    });
    const missed = Math.min(Infinity, ...misses);
    return { met: Math.max(-1, ...mets.filter((load) => load < missed)), missed };
  };
  const judged = (cell, rate, bound) => {
    if (cell.without) return cell.without;
    const load = rate * cell.services;
    const known = bound === null ? { met: Infinity, missed: Infinity } : timely(cell.runs, bound);
    if ((cell.missed ?? Infinity) <= load * EQUAL) return "RATE";
    if (known.missed <= load * EQUAL) return "LATENCY";
    if ((cell.met ?? -1) * EQUAL < load) return "RATE_UNKNOWN";
    return known.met * EQUAL < load ? "LATENCY_UNKNOWN" : data.kept;
  };
  const answer = (cells, rate, bound) => {
    const looked = cells.map((cell) => [cell.services, judged(cell, rate, bound)]);
    const best = Math.max(0, ...looked.filter(([, verdict]) => verdict === data.kept).map(([services]) => services));
    const next = looked.find(([services]) => services > best) ?? [best + 1, "NOT_MEASURED"];
    const doubts = looked.filter(([services, verdict]) => services < best && verdict !== data.kept);
    const limits = [next, ...doubts].map(([services, verdict]) => data.phrases[verdict].replace("{}", services));
    return [best || "none", limits.join("; ")];
  };

  const RATES = { k: 1e3, m: 1e6, g: 1e9, "": 1 }, TIMES = { ns: 1, us: 1e3, "µs": 1e3, "μs": 1e3, ms: 1e6, s: 1e9 };
  const parsed = (text, pattern, factors) => {
    const found = text.trim().match(pattern);
    return found ? Number(found[1]) * factors[found[2].toLowerCase()] || null : null;
  };
  const readers = {
    rate: (text) => parsed(text, /^(\d+(?:\.\d+)?)\s*([kmg]?)pps$/i, RATES),
    p99: (text) => (text.trim() ? parsed(text, /^(\d+(?:\.\d+)?)\s*(ns|us|µs|μs|ms|s)$/, TIMES) : Infinity),
  };

  const section = document.getElementById("fits-question")?.closest("section");
  if (data && section) {
    const inputs = Object.fromEntries([...section.querySelectorAll("[data-ask]")].map((place) => {
      const { ask, label, value } = place.dataset;
      const input = csit.make("input", { "aria-label": label, size: "9", placeholder: "any", value });
      place.replaceWith(input);
      return [ask, input];
    }));
    const status = section.querySelector("[role=status]"), command = section.querySelector("[data-command]");
    const shown = () => {
      const asked = {};
      Object.entries(inputs).forEach(([name, input]) => {
        asked[name] = readers[name](input.value);
        input.setAttribute("aria-invalid", asked[name] === null);
      });
      status.textContent = asked.rate === null ? "Enter a rate such as 500kpps or 1.2Mpps." : asked.p99 === null ? "Enter a latency such as 80us or 1.5ms, or nothing." : "";
      if (status.textContent) return;
      const bound = asked.p99 === Infinity ? null : asked.p99;
      const word = (input) => input.value.replace(/\s/g, "").replace(/[µμ]/, "u");
      command.textContent = `--rate ${word(inputs.rate)}${bound === null ? "" : ` --p99 ${word(inputs.p99)}`}`;
      [...section.querySelector("table.fits").tBodies[0].rows].forEach((row, at) => {
        [...row.querySelectorAll("td")].forEach((cell, column) => {
          const cells = data.lines[at][column];
          if (!cells) return;
          [cell.dataset.v, cell.querySelector("small").textContent] = answer(cells, asked.rate, bound);
          cell.querySelector("b").textContent = cell.dataset.v;
        });
      });
    };
    Object.values(inputs).forEach((input) => input.addEventListener("input", shown));
  }
}
