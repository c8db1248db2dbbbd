// Student's t, interpolated in a table that `report/pages/compare.py` computes, and the judgement of many cells.
{
  // The parabola through three neighbours of a place in an evenly spaced list.
  function between(list, place) {
    const middle = Math.min(Math.max(1, Math.round(place)), list.length - 2), x = place - middle;
    const [before, at, after] = list.slice(middle - 1, middle + 2);
    return at + (x * (after - before)) / 2 + (x * x * (after - 2 * at + before)) / 2;
  }
  csit.student = ({ steps, reach, log_chance: logs, log_quantile: quantiles }) => ({
    // Probability of a value at least as far from 0, to either side.
    chance: (t, freedom) => {
      const place = Math.sqrt(freedom * Math.log1p((t * t) / freedom)) * steps;
      if (place > reach * steps) return 0;
      return Math.exp(between(logs.map((list) => between(list, place)), (logs.length - 1) / freedom));
    },
    // The value that is exceeded to either side with the probability that the confidence leaves.
    quantile: (freedom) => Math.exp(between(quantiles, (quantiles.length - 1) / freedom)),
  });

  // Adjusted probabilities by Benjamini and Hochberg.
  csit.adjusted = (probabilities) => {
    const count = probabilities.length, adjusted = new Array(count).fill(1);
    const order = probabilities.map((_, k) => k).sort((a, b) => probabilities[b] - probabilities[a]);
    let least = 1;
    order.forEach((index, k) => {
      least = Math.min(least, (probabilities[index] * count) / (count - k));
      adjusted[index] = least;
    });
    return adjusted;
  };
}
