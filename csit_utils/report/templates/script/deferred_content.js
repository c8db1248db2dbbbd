// What a page holds back so that it opens at once.
// Scripts of the type text/plain hold it:
//   data-into="list"    HTML for the end of the element with that id, or of the table's body. It comes when the page is idle,
//                       and at once for who searches, sorts, saves, prints or follows a link: `csit.complete()`.
//   data-deflated       a text in zlib's format and base64 (`site.py`): `csit.unpacked(id)`.
{
  const held = [...document.querySelectorAll("script[data-into]")];
  function put() {
    const chunk = held.shift();
    const into = document.getElementById(chunk.dataset.into), place = into.tBodies?.[0] ?? into, before = place.lastElementChild;
    place.insertAdjacentHTML("beforeend", chunk.textContent);
    chunk.remove();
    for (let made = before?.nextElementSibling ?? place.firstElementChild; made; made = made.nextElementSibling) csit.dress(made);
  }
  csit.complete = () => { while (held.length) put(); };
  function later() {
    if (held.length) { put(); csit.idle(later); }
    else document.documentElement.dataset.complete = "yes";
  }
  addEventListener("load", () => csit.idle(later));
  addEventListener("beforeprint", csit.complete);
  // Paper cannot be opened: what is folded on the page of a test is printed, and answers and flame graphs everywhere. The
  // evidence of a number (`.why`) is among that of the verdict.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open], .why):is(.body *, .of-run, :has(.answers, .flames))")];
    folded.forEach((part) => { part.open = true; });
  });
  addEventListener("afterprint", () => folded.forEach((part) => { part.open = false; }));
  addEventListener("keydown", (event) => { if ((event.ctrlKey || event.metaKey) && event.key === "f") csit.complete(); });

  // They are behind this script, which does not wait for them.
  const parsed = new Promise((done) => { document.addEventListener("DOMContentLoaded", done); });
  csit.unpacked = async (id) => {
    await parsed;
    const bytes = Uint8Array.from(atob(document.getElementById(id).textContent.trim()), (letter) => letter.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
  };

  // The inside of a test's entry, in a file that has all of them: unpacked when it is opened.
  csit.opened = async (entry) => {
    if (entry.querySelector(":scope > .body")) return;
    const place = csit.make("div", { class: "body" }, "…");
    entry.append(place);
    if (!window.DecompressionStream) { place.textContent = "Browsers from 2023 on can unpack this; the report as a folder needs none."; return; }
    const { body, figures, plan } = JSON.parse(await csit.unpacked(`packed-${entry.id}`));
    Object.assign(csit.figures, figures);
    place.outerHTML = body;
    const link = entry.querySelector("a[data-plan]");
    if (link) link.href = URL.createObjectURL(new Blob([plan], { type: "application/json" }));
    csit.dress(entry.querySelector(":scope > .body"));
  };
  // The event does not bubble, but it is captured.
  document.addEventListener("toggle", (event) => { if (event.target.matches?.("details.test") && event.target.open) csit.opened(event.target); }, true);
}
