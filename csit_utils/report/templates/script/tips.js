// Tips: `data-tip="text"` on anything shows its text on hovering and on focus, as text and never as markup.
{
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
}
