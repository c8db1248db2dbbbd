// Student's t and what comparisons need of it. `tests/integration/test_report_changes_browser.py` holds it against scipy.
{
  // Lanczos' approximation, g = 7, nine terms.
  const LANCZOS = [0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313,
    -176.61502916214059, 12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7];
  function logGamma(z) {
    if (z < 0.5) return Math.log(Math.PI / Math.sin(Math.PI * z)) - logGamma(1 - z);
    const t = z + 6.5;
    const sum = LANCZOS.reduce((total, part, k) => total + (k ? part / (z + k - 1) : part), 0);
    return 0.5 * Math.log(2 * Math.PI) + (z - 0.5) * Math.log(t) - t + Math.log(sum);
  }

  // Regularized incomplete beta function by its continued fraction, evaluated by Lentz's method.
  function beta(x, a, b) {
    if (x <= 0 || x >= 1) return x <= 0 ? 0 : 1;
    if (x > (a + 1) / (a + b + 2)) return 1 - beta(1 - x, b, a);
    const front = Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log(1 - x)) / a;
    const safe = (value) => (Math.abs(value) < 1e-300 ? 1e-300 : value);
    let c = 1, d = 1 / safe(1 - ((a + b) * x) / (a + 1)), result = d;
    for (let m = 1; m < 300; m += 1) {
      const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
      d = 1 / safe(1 + even * d); c = safe(1 + even / c); result *= d * c;
      const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
      d = 1 / safe(1 + odd * d); c = safe(1 + odd / c); result *= d * c;
      if (Math.abs(d * c - 1) < 1e-14) break;
    }
    return front * result;
  }

  // Chance of a value at least as far from 0, to either side.
  const chance = (t, freedom) => beta(freedom / (freedom + t * t), freedom / 2, 0.5);

  // The value that is exceeded to either side with this chance: by halving, between 0 and what is surely beyond it.
  function quantile(chance_, freedom) {
    let low = 0, high = 1;
    while (chance(high, freedom) > chance_) high *= 2;
    for (let k = 0; k < 100 && high - low > 1e-12 * high; k += 1) {
      const middle = (low + high) / 2;
      if (chance(middle, freedom) > chance_) low = middle; else high = middle;
    }
    return (low + high) / 2;
  }

  // Adjusted probabilities by Benjamini and Hochberg.
  function together(probabilities) {
    const count = probabilities.length, adjusted = new Array(count).fill(1);
    const order = probabilities.map((_, k) => k).sort((a, b) => probabilities[b] - probabilities[a]);
    let least = 1;
    order.forEach((index, k) => {
      least = Math.min(least, (probabilities[index] * count) / (count - k));
      adjusted[index] = least;
    });
    return adjusted;
  }
  csit.student = { chance, quantile, together };
}
