// Addresses: `#id` shows the element wherever it is folded away and marks it, `#filter=words` filters the table.
{
  function follow() {
    document.querySelectorAll(".target").forEach((element) => element.classList.remove("target"));
    let hash = location.hash.slice(1);
    try { hash = decodeURIComponent(hash); } catch { return; }
    if (hash.startsWith("filter=") && csit.filter) { csit.filter(hash.slice("filter=".length)); return; }
    const element = hash && document.getElementById(hash);
    if (!element) return;
    csit.reveal?.(element);
    for (let up = element; up; up = up.parentElement) if (up instanceof HTMLDetailsElement) up.open = true;
    if (!element.matches("main, section, .part")) element.classList.add("target");
    element.scrollIntoView({ block: element.matches("td, tr") ? "center" : "start" });
    // Links and cells take the focus, and so their tips show.
    element.querySelector(":scope > a, :scope > span[tabindex]")?.focus({ preventScroll: true });
  }
  addEventListener("hashchange", follow);
  follow();
  document.documentElement.dataset.ready = "yes";
}
