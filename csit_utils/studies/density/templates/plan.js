"use strict";
// Shows the cell that is chosen; everything is written as text, never as markup.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const about = document.getElementById("about"), detail = document.getElementById("detail");
  const buttons = [...document.querySelectorAll("td button")];
  const byKey = new Map(buttons.map((button) => [button.dataset.k, button]));
  const TONES = { system: "system", generator: "generator", vswitch: "vswitch" };
  const ROLES = { s: "", m: " main", d: " data" };
  const MANY = 8; // threads of one kind on one CPU that are listed one by one
  let chosen = null;

  function make(tag, className, ...children) {
    const element = document.createElement(tag);
    if (className) element.className = className;
    element.append(...children);
    return element;
  }
  const list = (numbers) => make("ul", "plain", ...numbers.map((number) => make("li", "", data.texts[number])));

  function tone(owner) {
    return TONES[owner] || (owner.startsWith("vswitch-") && TONES.vswitch) || `nf${(Number(owner.split("-")[1]) - 1) % 6}`;
  }
  function thread(text, owner, role) {
    const element = make("span", `thread ${role}`, text);
    element.style.setProperty("--tone", `var(--${tone(owner)})`);
    return element;
  }
  // Logical CPU -> [[owner, role, index], ...]
  function threadsByCpu(text) {
    const found = new Map();
    text.split(" ").forEach((part) => {
      const [owner, rest] = part.split(":");
      rest.slice(1).split(",").forEach((cpu, index) => {
        if (!found.has(cpu)) found.set(cpu, []);
        found.get(cpu).push([owner, rest[0], index]);
      });
    });
    return found;
  }
  function boxes(threads) {
    return ["d", "m", "s"].flatMap((role) => {
      const own = threads.filter((each) => each[1] === role);
      const nfs = own.filter((each) => each[0].startsWith("nf-"));
      const summed = nfs.length > MANY;
      const single = summed ? own.filter((each) => !each[0].startsWith("nf-")) : own;
      const shown = single.map(([owner, , index]) => thread(`${owner}${ROLES[role]}${role === "d" ? ` ${index}` : ""}`, owner, role));
      if (summed) shown.push(thread(`${nfs.length} NF threads${ROLES[role]}: ${nfs[0][0]} to ${nfs[nfs.length - 1][0]}`, nfs[0][0], role));
      return shown;
    });
  }
  function coreMap([, , , physical, threads]) {
    const cores = physical.split("|").map((core) => core.split(","));
    const width = Math.max(...cores.map((core) => core.length));
    const by = threadsByCpu(threads);
    const grid = make("div", "cores");
    grid.style.gridTemplateColumns = `2.6rem repeat(${width}, minmax(0, 1fr))`;
    grid.append(make("div", "head", "core"));
    for (let column = 0; column < width; column += 1) grid.append(make("div", "head", `thread ${column}`));
    cores.forEach((core, number) => {
      grid.append(make("div", "number", String(number)));
      core.forEach((cpu) => {
        const here = by.get(cpu) || [];
        grid.append(make("div", here.length ? "" : "idle", make("span", "cpu", `CPU ${cpu}`), " ", ...(here.length ? boxes(here) : ["idle"])));
      });
      for (let rest = core.length; rest < width; rest += 1) grid.append(make("div", "head"));
    });
    return grid;
  }
  function show(button) {
    const [name, slides, reasons, uneven, siblings, number, queues] = data.cells[button.dataset.k];
    const state = ["fits", "over", "none"].find((word) => button.classList.contains(word));
    const words = { fits: "fits", over: "runs oversubscribed", none: "does not fit" };
    const parts = [make("h3", "", name), make("span", `state ${state}`, words[state])];
    if (reasons.length) parts.push(make("h4", "", state === "over" ? "Why it is oversubscribed" : "Why it does not fit"), list(reasons));
    if (uneven.length) parts.push(make("h4", "", "Uneven"), list(uneven));
    if (siblings.length) parts.push(make("h4", "", "Shared cores"), list(siblings));
    if (queues.length) parts.push(make("h4", "", "Receive queues of physical ports"), list(queues));
    if (number >= 0) {
      const lines = data.maps[number];
      const machines = [["", ...lines.slice(0, 5)]];
      for (let next = 5; next < lines.length; next += 6) machines.push(lines.slice(next, next + 6));
      machines.forEach(([machine, ...map]) => {
        const free = map[2] - map[1];
        const rest = free > 0 ? `, ${free} stay free` : "";
        parts.push(make("h4", "", machine ? `Core map of ${machine}` : "Core map"), make("p", "dim", `${map[1]} physical cores needed, ${map[2]} there on NUMA node ${map[0]}${rest}. Filled is a data thread, outlined a main thread.`), coreMap(map));
      });
    }
    parts.push(make("p", "dim", `vSwitch and NFs take ${slides} cores by the slides' counting: a main thread is half a core, the system's core is left out.`));
    about.replaceChildren(...parts);
    if (chosen) { chosen.setAttribute("aria-pressed", "false"); chosen.tabIndex = -1; }
    chosen = button;
    chosen.setAttribute("aria-pressed", "true");
    chosen.tabIndex = 0;
    detail.classList.add("open");
    detail.scrollTop = 0;
  }
  function choose(button) {
    show(button);
    history.replaceState(null, "", `#${encodeURIComponent(button.dataset.k)}`);
  }
  function move(button, down, right) {
    const cell = button.parentElement, row = cell.parentElement;
    const rows = [...row.parentElement.rows];
    const next = rows[rows.indexOf(row) + down]?.cells[cell.cellIndex + right]?.querySelector("button");
    if (next) { next.focus(); choose(next); }
  }
  const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  document.getElementById("matrices").addEventListener("click", (event) => {
    const button = event.target.closest("td button");
    if (button) choose(button);
  });
  document.getElementById("matrices").addEventListener("keydown", (event) => {
    const button = event.target.closest("td button");
    if (!button || !STEPS[event.key]) return;
    event.preventDefault();
    move(button, ...STEPS[event.key]);
  });
  // On a wide screen a look is enough; the choice comes back when the pointer leaves.
  const wide = matchMedia("(min-width: 1001px)");
  let pinned = null;
  document.getElementById("matrices").addEventListener("click", () => { pinned = chosen; });
  document.getElementById("matrices").addEventListener("mouseover", (event) => {
    const button = event.target.closest("td button");
    if (wide.matches && button && button !== chosen) show(button);
  });
  document.getElementById("matrices").addEventListener("mouseleave", () => { if (wide.matches && pinned) show(pinned); });
  const close = () => { detail.classList.remove("open"); chosen?.focus(); };
  document.getElementById("close").addEventListener("click", close);
  addEventListener("keydown", (event) => { if (event.key === "Escape") close(); });

  // Tab reaches one cell of each matrix; arrow keys the others.
  document.querySelectorAll("tbody").forEach((body) => { const first = body.querySelector("td button"); if (first) first.tabIndex = 0; });
  const asked = byKey.get(decodeURIComponent(location.hash.slice(1)));
  if (asked) { choose(asked); pinned = asked; asked.scrollIntoView({ block: "center" }); }
  document.documentElement.dataset.ready = "yes";
})();
