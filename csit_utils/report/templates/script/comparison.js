// What differs between two sets of runs, cell by cell: the same rules as `analysis/comparisons/comparison.py`, where they are explained.
{
  const CONFIDENCE = 0.95, FALSE_CALLS = 0.05, MARGIN = 0.005;
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const median = (values) => {
    if (!values.length) return 0;
    const sorted = [...values].sort((a, b) => a - b), half = sorted.length >> 1;
    return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
  };
  const of = (list, k, otherwise = 0) => (list ? list[k] : otherwise);

  // A cell's figures in these runs, summed up; null where there are none.
  function side(cell, runs) {
    let chosen = cell.r.map((_, k) => k).filter((k) => runs.has(cell.r[k]));
    const asked = chosen.filter((k) => !of(cell.y, k));
    chosen = asked.length ? asked : chosen;
    if (!chosen.length) return null;
    const values = chosen.map((k) => cell.v[k]), several = values.length > 1, middle = mean(values);
    const halves = chosen.map((k) => (cell.h ? cell.h[k] : cell.u[k] === null ? null : (cell.u[k] - cell.v[k]) / 2));
    const known = halves.filter((half) => half !== null);
    const first = chosen[0];
    return {
      cell, n: values.length, mean: middle,
      stdev: several ? Math.sqrt(values.reduce((sum, value) => sum + (value - middle) ** 2, 0) / (values.length - 1)) : null,
      low: several ? Math.min(...values) : of(cell.d, first, values[0]),
      high: several ? Math.max(...values) : cell.u[first] ?? Infinity,
      resolution: Math.max(median(known), median(chosen.map((k) => of(cell.e, k))), ...chosen.map((k) => of(cell.q, k))),
      limit: halves.some((half) => half === null),
      outOfOrder: chosen.map((k) => of(cell.o, k, "")).find(Boolean),
    };
  }

  function judge(a, b, student) {
    const relative = (before, after) => (before ? after / before - 1 : after ? Infinity : 0);
    const change = relative(a.mean, b.mean);
    if (a.n === 1 && b.n === 1) {
      const less = 1 - MARGIN, more = 1 + MARGIN;
      return {
        method: "bounds", change, low: relative(more * a.high, less * b.low),
        high: relative(Math.max(0, less * a.low), more * b.high), probability: null,
      };
    }
    const spread = (own, other) => Math.max(own.stdev ?? other.stdev ?? 0, own.resolution);
    const errorA = spread(a, b) / Math.sqrt(a.n), errorB = spread(b, a) / Math.sqrt(b.n);
    const error = Math.hypot(errorA, errorB), runs = Math.min(a.n, b.n) > 1;
    const method = runs ? "runs" : "one run against several";
    if (!error || !a.mean) return { method, change, low: change, high: change, probability: a.mean === b.mean ? 1 : 0 };
    const parts = errorA ** 4 / (a.n - 1) + errorB ** 4 / (b.n - 1);
    const welch = parts ? (errorA ** 2 + errorB ** 2) ** 2 / parts : a.n + b.n - 2;
    const freedom = runs ? welch : Math.max(a.n, b.n) - 1;
    const reach = student.quantile(freedom) * Math.hypot(errorB / a.mean, (b.mean * errorA) / a.mean ** 2);
    return { method, change, low: change - reach, high: change + reach, probability: student.chance((b.mean - a.mean) / error, freedom) };
  }

  // Single runs: the spread of changes over a matrix estimates the noise, see `analysis/comparisons/comparison.py`.
  const FEWEST_CELLS = 8;
  function bySpread(changes, student) {
    const groups = new Map();
    const limited = (each) => Math.max(each.a.high, each.b.high) === Infinity;
    changes.filter((each) => each.method === "bounds" && each.outcome !== "unlike" && !limited(each)).forEach((each) => {
      const key = [each.a.cell.t, each.a.cell.p, each.a.cell.m, each.a.cell.g, each.b.cell.g].join();
      groups.set(key, [...(groups.get(key) ?? []), each]);
    });
    groups.forEach((group) => {
      if (group.length < FEWEST_CELLS || group.some(({ a, b }) => a.mean <= 0 || b.mean <= 0)) return;
      const logs = group.map(({ a, b }) => Math.log(b.mean / a.mean)), middle = median(logs);
      const noise = 1.4826 * median(logs.map((log) => Math.abs(log - middle))), freedom = group.length - 1;
      const quantile = student.quantile(freedom);
      group.forEach((each, k) => {
        const error = Math.max(noise, Math.hypot(each.a.resolution / each.a.mean, each.b.resolution / each.b.mean));
        each.method = "spread over cells";
        each.outcome = "no change seen";
        each.low = Math.expm1(logs[k] - quantile * error);
        each.high = Math.expm1(logs[k] + quantile * error);
        each.probability = error ? student.chance(logs[k] / error, freedom) : logs[k] ? 0 : 1;
      });
    });
  }

  const place = (cell) => [cell.t, cell.p, cell.s, cell.n, cell.m].join("|");

  // Pairs of cells that are the same one in both.
  function pairs(ofA, ofB, kindOf) {
    const there = new Map();
    ofB.forEach((b) => there.set(place(b.cell), [...(there.get(place(b.cell)) ?? []), b]));
    const inA = new Set(ofA.map((a) => a.cell));
    return ofA.flatMap((a) => {
      const found = there.get(place(a.cell)) ?? [];
      const own = found.filter((b) => b.cell === a.cell);
      const same = own.length ? own : found.filter((b) => !inA.has(b.cell));
      const goals = same.filter((b) => kindOf(b.cell) === kindOf(a.cell));
      return (goals.length ? goals : same).map((b) => [a, b]);
    });
  }

  csit.compare = (data, runsA, runsB, insist = false) => {
    const student = csit.student(data.student);
    const sides = (runs) => data.cells.map((cell) => side(cell, new Set(runs))).filter(Boolean);
    const ofA = sides(runsA), ofB = sides(runsB), both = pairs(ofA, ofB, (cell) => cell.g);
    const direction = (a, b, change) => {
      if (a.cell.b !== b.cell.b) return change < 0 ? "lower than A" : "higher than A";  // another testbed is no regression
      return change < 0 !== data.less_is_better.includes(a.cell.m) ? "regression" : "progression";
    };
    const unlike = new Map(data.unlike.map(([a, b, metric, ...sentences]) => [[a, b, metric].join(), sentences]));
    const changes = both.map(([a, b]) => {
      const judged = judge(a, b, student);
      if (judged.method === "bounds" && data.unbounded.includes(a.cell.m)) [judged.low, judged.high] = [-Infinity, Infinity];
      const [differences, remarks] = unlike.get([a.cell.k, b.cell.k, data.metrics[a.cell.m]].join()) ?? [[], []];
      const notes = [...differences, ...remarks];
      if (a.limit) notes.push("A is a lower bound, limited by the offered load");
      if (b.limit) notes.push("B is a lower bound, limited by the offered load");
      if (a.outOfOrder) notes.push(`A: ${a.outOfOrder}`);
      if (b.outOfOrder) notes.push(`B: ${b.outOfOrder}`);
      let outcome = "no change seen";
      if (differences.length && !insist) { outcome = "unlike"; judged.probability = null; }
      else if (judged.method === "bounds") outcome = judged.high < 0 || judged.low > 0 ? direction(a, b, judged.change) : "cannot tell";
      return { a, b, ...judged, outcome, remarks: notes, differences };
    });
    bySpread(changes, student);
    const open = changes.filter((each) => each.probability !== null);
    csit.adjusted(open.map((each) => each.probability)).forEach((adjusted, k) => {
      open[k].adjusted = adjusted;
      open[k].outcome = adjusted <= FALSE_CALLS ? direction(open[k].a, open[k].b, open[k].change) : "no change seen";
      if (adjusted > FALSE_CALLS && open[k].probability <= 1 - CONFIDENCE) {
        open[k].remarks.push("significant for this cell alone, but not among this many cells");
      }
    });
    const pairedA = new Set(both.map(([a]) => a)), pairedB = new Set(both.map(([, b]) => b));
    return { changes, onlyA: ofA.filter((a) => !pairedA.has(a)), onlyB: ofB.filter((b) => !pairedB.has(b)) };
  };
}
