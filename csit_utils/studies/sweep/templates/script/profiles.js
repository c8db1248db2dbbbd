// The highest rate that keeps bounds of loss and delay, from the functions of each profile: as `profiling.using` does it.
{
  // The catalogue of `profiling.curves`, by name.
  const curves = {
    "fixed capacity": (c, r) => 100 * (1 - c.d / r),
    constant: (c) => c.a,
    excess: (c, r) => 100 * (1 - c.d / (r - c.g)),
    linear: (c, r) => c.a * r + c.b,
    exponential: (c, r) => c.a * Math.exp(c.b * r),
    logarithm: (c, r) => c.a + c.b * Math.log(r),
    power: (c, r) => c.a * r ** c.b,
    hyperbola: (c, r) => c.a + c.b / r,
    "exponential over a base": (c, r) => c.a + Math.exp(c.b * (r - c.c)),
    "exponential below a base": (c, r) => c.a - Math.exp(c.b * (r - c.c)),
    quadratic: (c, r) => (c.a * r + c.b) * r + c.c,
    "power over a base": (c, r) => c.a + c.b * r ** c.c,
    "hyperbola with a pole": (c, r) => c.a + c.b / (c.c - r),
  };
  const poles = { excess: "g", "hyperbola with a pole": "c" };
  const STEPS = 200, EXACT = 1e-6, STEP = 1e-5;

  // A function at a rate; null behind a pole, where it is another function.
  function ofFit(fit, rate) {
    const pole = fit.c[poles[fit.name]];
    if (pole !== undefined && (rate - pole) * (fit.first - pole) <= 0) return null;
    const value = curves[fit.name]?.(fit.c, rate);
    return Number.isFinite(value) ? value : null;
  }

  // Half of the width of the 95 % interval of a function: derivatives by its coefficients with their covariance.
  function halfWidth(fit, rate) {
    const names = Object.keys(fit.c);
    if (!fit.covariance.length) return 0;
    const slopes = names.map((name) => {
      const step = STEP * (Math.abs(fit.c[name]) || 1);
      const at = (sign) => curves[fit.name]({ ...fit.c, [name]: fit.c[name] + sign * step }, rate);
      return (at(1) - at(-1)) / (2 * step);
    });
    let squared = 0;
    slopes.forEach((one, i) => slopes.forEach((other, j) => { squared += one * fit.covariance[i][j] * other; }));
    return Number.isFinite(squared) && squared > 0 ? fit.times * Math.sqrt(squared) : 0;
  }

  // From a function to the estimate, or to an end of its interval: as `fitting.reach` does it.
  function reach(fit, rate, side) {
    const own = side * halfWidth(fit, rate);
    const value = ofFit(fit, rate), other = fit.rival ? ofFit(fit.rival, rate) : null;
    if (value === null || other === null) return own;
    return own + fit.weight * (other + side * halfWidth(fit.rival, rate) - value - own);
  }

  // A straight line from the last load of one function to the first load of another.
  function across(below, above, rate, side) {
    if (!below || !above) return null;
    const start = ofFit(below, below.last), end = ofFit(above, above.first);
    if (start === null || end === null) return null;
    const share = (rate - below.last) / (above.first - below.last);
    const one = reach(below, below.last, side), other = reach(above, above.first, side);
    return start + share * (end - start) + (Math.abs(other) > Math.abs(one) ? other : one);
  }

  // The value, or the end that is nearest to it.
  const between = (one, value, other) => Math.min(Math.max(one, other), Math.max(Math.min(one, other), value));

  // `side` is 1 for upper ends of intervals of values, with lower ends of those of break-points; -1 for the others.
  function plain(profile, metric, rate, side) {
    const fits = profile.metrics[metric];
    if (!fits) return null;
    const region = profile.breaks.at(side).filter((edge) => rate >= edge).length;
    const fit = fits[region];
    if (!fit) return region > 0 && region < fits.length - 1 ? across(fits[0], fits.at(-1), rate, side) : null;
    let value = ofFit(fit, rate);
    const beside = rate > fit.last ? fits[region + 1] : rate < fit.first ? fits[region - 1] : null;
    if (beside) {
      const [below, above] = fit.last < beside.last ? [fit, beside] : [beside, fit];
      if (value === null) return across(below, above, rate, side);
      const start = ofFit(below, below.last);
      let end = ofFit(above, above.first);
      if (start !== null && end !== null) {
        const meeting = fit === below ? ofFit(above, profile.breaks.at(side)[region]) : null;
        if (meeting !== null) end = between(start, meeting, end);
        value = between(start, value, end);
      }
    }
    return value === null ? null : value + reach(fit, rate, side);
  }

  function valueAt(profile, metric, rate, side) {
    const value = plain(profile, metric, rate, side);
    if (value === null) return null;
    return metric === "loss" ? Math.min(100, Math.max(0, value)) : Math.max(0, value);
  }

  // The bound that a rate breaks, and whether its metric is known there; null where it breaks none.
  function broken(profile, bounds, rate, side) {
    for (const [metric, bound] of bounds) {
      const value = valueAt(profile, metric, rate, side);
      if (value === null || value > bound) return { metric, known: value !== null };
    }
    return null;
  }

  function highest(profile, bounds, side) {
    if (profile.first === null) return { rate: null, limitedBy: bounds[0]?.[0] ?? "throughput", known: false, from: null };
    const width = profile.last - profile.first;
    const even = Array.from({ length: STEPS }, (_, at) => profile.first + (at * width) / (STEPS - 1));
    even[STEPS - 1] = profile.last;
    const rates = [...even, ...profile.breaks.at(side)].sort((a, b) => a - b);
    let first = null, good = null, outside = null;
    for (const rate of rates) {
      const found = broken(profile, bounds, rate, side);
      if (!found) { first ??= rate; good = rate; continue; }
      if (good === null) { outside ??= found; continue; }
      let low = good, high = rate;
      while (high - low > EXACT * high) {
        const middle = (low + high) / 2;
        if (broken(profile, bounds, middle, side)) high = middle; else low = middle;
      }
      return { rate: low, limitedBy: found.metric, known: found.known, from: first };
    }
    if (good !== null) return { rate: good, limitedBy: null, known: true, from: first };
    return { rate: null, limitedBy: outside.metric, known: outside.known, from: null };
  }

  // Rates in Gbit/s, with the ends of the 95 % interval. `bounds` are pairs of a metric and the most it may be.
  csit.highestRate = (profile, bounds) => {
    const found = highest(profile, bounds, 0);
    const breaks = profile.breaks[0].filter((edge) => found.rate * (1 + 2 * EXACT) >= edge).length;
    if (found.rate === null || !profile.metrics[found.limitedBy]?.[breaks]?.covariance.length) return { ...found, low: null, high: null };
    const low = highest(profile, bounds, 1), high = highest(profile, bounds, -1);
    return { ...found, low: low.rate, high: high.limitedBy === null ? null : high.rate };
  };

  // As `profiling.flavors` has it: null where it is not known.
  csit.carries = (found, rate) => {
    if (found.rate !== null && rate <= found.rate) return found.from === null || rate >= found.from;
    return found.limitedBy !== null && found.known ? false : null;
  };

  const form = document.getElementById("quality"), profiles = csit.json("profiles-data");
  if (form && profiles) {
    const boxes = ["loss", "delay", "rate"].map((name) => form.elements[name]);
    const best = document.querySelector(".quality-best");
    // By packets and bits, as `words.input_words` has it.
    const PREFIXES = [[1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];
    const scaled = (value, unit) => {
      const [factor, prefix] = PREFIXES.find(([each]) => value / each >= 0.9995) ?? [1, ""];
      return `${(value / factor).toLocaleString("en", { minimumSignificantDigits: 3, maximumSignificantDigits: 3, useGrouping: false })} ${prefix}${unit}`;
    };
    const number = (box) => (box.value === "" ? null : Number(box.value));
    // In Gbit/s, of packets with so many bits.
    const expected = (text, bits) => {
      const [, value, asked, unit] = text.trim().match(/^([\d.]+)\s*([kKMG]?)(pps|bit\/s)$/);
      const [factor] = PREFIXES.find(([, prefix]) => prefix === asked.replace("K", "k"));
      return (Number(value) * factor * (unit === "pps" ? bits : 1)) / 1e9;
    };
    const lines = [...document.querySelectorAll("tr[data-profile]")];

    function spoken(found, bits) {
      if (found.rate === null) return found.known ? "none" : "unknown";
      const packets = (rate) => scaled((rate * 1e9) / bits, "pps"), text = `${packets(found.rate)} (${scaled(found.rate * 1e9, "bit/s")})`;
      if (found.limitedBy === null || !found.known) return `at least ${text}`;
      const ends = [found.low, found.high].map((rate) => rate && packets(rate));
      return ends.includes(null) || ends[0] === ends[1] ? text : `${text}, 95 % interval ${ends.join(" to ")}`;
    }

    // A smaller one that carries the expected rate is the better one.
    function smallest(able) {
      const size = (line) => Number(line.cells[2].textContent);
      const [one] = able.filter(size).sort((a, b) => size(a) - size(b));
      return one && `With the fewest vCPUs (${size(one)}) it is carried by ${one.querySelector("a").textContent}.`;
    }

    function show() {
      if (!form.checkValidity()) return;
      const [loss, delay] = boxes.slice(0, 2).map(number), rate = boxes[2].value.trim();
      const bounds = [["loss", loss], ["delay", delay]].filter(([, bound]) => bound !== null);
      const able = [];
      lines.forEach((line) => {
        const profile = profiles[line.dataset.profile], found = csit.highestRate(profile, bounds);
        const cell = line.querySelector(".highest");
        cell.textContent = spoken(found, profile.bits);
        cell.dataset.v = found.rate === null ? "" : found.rate * 1e9;
        const limit = found.limitedBy ?? "–";
        line.querySelector(".limited").textContent = found.limitedBy && !found.known ? `${limit} is unknown above` : limit;
        const carried = rate ? csit.carries(found, expected(rate, profile.bits)) : null;
        line.querySelector(".carries").textContent = !rate ? "–" : { true: "yes", false: "no", null: "unknown" }[carried];
        if (carried) able.push(line);
      });
      [best, ...document.querySelectorAll(".carries")].forEach((element) => { element.hidden = !rate; });
      if (rate) best.textContent = smallest(able) ?? "No service here is known to carry it.";
    }

    form.hidden = false;
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", () => {
      show();
      history.replaceState(null, "", `#within=${boxes.map((box) => box.value).join(",")}`);
    });
    csit.addresses.within = (words) => {
      words.split(",").slice(0, 3).forEach((word, at) => { boxes[at].value = word; });
      show();
      form.closest("section").scrollIntoView();
    };
  }
}
