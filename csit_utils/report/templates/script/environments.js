// What differs between two environments that the reader chooses (`environments.payload`).
document.querySelectorAll("[data-pair]").forEach((part) => {
  const { names, by_word: byWord, texts, rows } = csit.figures[part.dataset.pair].variants;
  const labels = JSON.parse(part.dataset.labels);
  const chosen = { a: Number(part.dataset.a), b: Number(part.dataset.b) };
  const body = part.querySelector("tbody"), place = part.querySelector(".choices");
  const equal = csit.make("input", { type: "checkbox" });

  // Of a long line only the words that the other one has not.
  const words = (own, other) => own.split(" ").filter((word) => !other.split(" ").includes(word)).join(" ") || "–";
  const text = (row, at) => (row[at] < 0 ? "–" : texts[row[at]]);
  function line(at, a, b) {
    let [one, other] = [text(a, at), text(b, at)];
    const differs = one !== other;
    if (differs && byWord.includes(at)) [one, other] = [words(one, other), words(other, one)];
    const made = csit.make("tr", differs ? { class: "differs" } : {});
    made.append(csit.make("th", { scope: "row" }, names[at]), csit.make("td", {}, one), csit.make("td", {}, other));
    return made;
  }

  function show() {
    const [a, b] = [rows[chosen.a], rows[chosen.b]];
    const at = names.map((_, index) => index).filter((index) => Math.max(a[index], b[index]) >= 0);
    const listed = at.filter((index) => equal.checked || a[index] !== b[index]);
    body.replaceChildren(...listed.map((index) => line(index, a, b)));
    if (!listed.length) body.append(csit.make("tr", {}, csit.make("td", { colspan: "3" }, "No recorded difference.")));
    part.querySelector("th.a").textContent = labels[chosen.a];
    part.querySelector("th.b").textContent = labels[chosen.b];
  }

  ["a", "b"].forEach((side) => {
    const select = csit.make("select");
    labels.forEach((label, index) => select.add(new Option(label, index, false, index === chosen[side])));
    select.addEventListener("change", () => { chosen[side] = Number(select.value); show(); });
    place.append(csit.make("label", {}, side === "a" ? "Between " : "and ", select));
  });
  equal.addEventListener("change", show);
  place.append(csit.make("label", {}, equal, " also what is equal"));
  show();
});
// Blocks of commands that can be copied.
csit.onContent((root) => csit.all(root, ".capsule .copy").forEach((button) => {
  if (!navigator.clipboard) return;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.closest(".capsule").querySelector("pre").textContent);
    button.textContent = "Copied";
  });
}));
