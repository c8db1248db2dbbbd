// Addresses: `#id` shows the element wherever it is folded away or held back and marks it; `#word=what` is for who has put
// a function there as `csit.addresses.word`.
{
  const find = (id) => {
    const there = document.getElementById(id);
    if (there) return there;
    csit.complete();
    return document.getElementById(id);
  };

  async function follow() {
    document.querySelectorAll(".target").forEach((element) => element.classList.remove("target"));
    let hash = location.hash.slice(1);
    try { hash = decodeURIComponent(hash); } catch { return; }
    const word = hash.split("=", 1)[0];
    if (hash.includes("=") && Object.hasOwn(csit.addresses, word)) { csit.addresses[word](hash.slice(word.length + 1)); return; }
    if (!hash) return;
    let element = find(hash);
    // A part of a test that is not unpacked yet.
    const [part, test] = element ? [] : hash.match(/^[a-z]+-(test-.*)$/) ?? [];
    const entry = element ?? (part && find(test));
    if (!entry) return;
    if (entry.matches("details.test")) await csit.opened(entry);
    element ??= document.getElementById(hash) ?? entry;
    csit.reveal?.(element);
    for (let up = element; up; up = up.parentElement) if (up instanceof HTMLDetailsElement) up.open = true;
    if (!element.matches("main, section, .part")) element.classList.add("target");
    element.scrollIntoView({ block: element.matches("td, tr") ? "center" : "start" });
    // Links and cells take the focus, and so their tips show.
    element.querySelector(":scope > a, :scope > span[tabindex]")?.focus({ preventScroll: true });
  }
  addEventListener("hashchange", follow);
  follow().then(() => { document.documentElement.dataset.ready = "yes"; });
}
