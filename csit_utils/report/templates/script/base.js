"use strict";
// What the files of the page's script share. They are put together in the order of `html.SCRIPTS`; there is no build.
// Everything here improves a page that is complete without it, except for the curves.
const csit = { addresses: {} };
{
  const system = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;
  const listeners = [];
  const changed = () => listeners.forEach((listener) => listener());
  csit.json = (id) => { const found = document.getElementById(id); return found ? JSON.parse(found.textContent) : null; };
  csit.figures = csit.json("figures") ?? {};
  csit.scheme = () => root.dataset.scheme ?? (system.matches ? "dark" : "light");
  csit.onScheme = (listener) => listeners.push(listener);
  system.addEventListener("change", changed);

  // The button that chooses between light and dark; pages opened from a file may have no memory for it.
  const button = document.getElementById("scheme");
  const other = () => (csit.scheme() === "dark" ? "light" : "dark");
  const label = () => { button.setAttribute("aria-label", `Change to ${other()} colours`); };
  button.addEventListener("click", () => {
    root.dataset.scheme = other();
    try { localStorage.setItem("csit-scheme", root.dataset.scheme); } catch { /* it lasts as long as the page */ }
    label();
    changed();
  });
  button.hidden = false;
  label();

  // An element with attributes and what is in it; text stays text.
  csit.make = (tag, attributes = {}, ...inside) => {
    const made = document.createElement(tag);
    Object.entries(attributes).forEach(([name, value]) => made.setAttribute(name, value));
    made.append(...inside);
    return made;
  };
  csit.button = (text, label, action) => {
    const made = csit.make("button", { type: "button", "aria-label": label }, text);
    made.addEventListener("click", action);
    return made;
  };

  // What is done to the page's content is done to what comes later, too: a dresser is given an element, at first all.
  const dressers = [];
  csit.onContent = (dresser) => { dressers.push(dresser); dresser(document); };
  csit.dress = (root) => dressers.forEach((dresser) => dresser(root));
  // Elements that match, of what is given and all that is in it.
  csit.all = (root, selector) => [...(root.matches?.(selector) ? [root] : []), ...root.querySelectorAll(selector)];

  // When there is nothing better to do: a page is there to be read and used before its plots are.
  csit.idle = (task) => (window.requestIdleCallback ? requestIdleCallback(task, { timeout: 1500 }) : setTimeout(task, 50));

  // Hand a file to the reader.
  csit.save = (name, content, type) => {
    const url = content instanceof Blob || !type ? content : new Blob([content], { type });
    const link = csit.make("a", { href: url instanceof Blob ? URL.createObjectURL(url) : url, download: name });
    link.click();
    if (url instanceof Blob) setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };

  // The library for plots is large: it is loaded when the first plot comes near the window.
  let loading = null;
  csit.plotly = () => {
    loading ??= new Promise((done, failed) => {
      const script = document.createElement("script");
      if (!root.dataset.assets) {
        csit.unpacked("plotly").then((text) => {
          script.textContent = text;
          document.head.append(script);
          done(window.Plotly);
        }, failed);
        return;
      }
      script.src = `${root.dataset.assets}plotly.js`;
      script.addEventListener("load", () => done(window.Plotly));
      script.addEventListener("error", () => failed(new Error(`${script.src} is missing`)));
      document.head.append(script);
    });
    return loading;
  };
}
