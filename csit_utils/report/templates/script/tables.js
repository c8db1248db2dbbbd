// Tables. `<table class="data">` gets a filter (from eight rows on), sorting, and its rows as CSV and Markdown, with no
// code of its own. How to write one:
//   <table class="data plain" data-name="losses">          file name; else that of the caption
//   <thead><tr><th data-sort="text">cell</th>              sorts as text; "number" by number; without: not at all
//              <th data-sort="number" class="num">NDR</th>
//   <tbody><tr><td>CSC 1x1</td><td class="num" data-v="212000.0">212 kpps</td>
// `data-v` is the raw value, for sorting and for CSV; empty where it is unknown, which stays last either way. Cells
// without it are what they show. `data-head` on a head is the name of the column in CSV, say with a unit: `ndr_pps`.
// `data-filter="no"` leaves the filter out. Rows that are hidden are not in the files. `#filter=words` in the address
// fills the filter of the first table that has `data-address`. `data-total` is the number of rows where some are held back.
{
  const plain = (element) => element.textContent.replace(/\s+/g, " ").trim();
  const grouped = (number) => number.toLocaleString("en");
  const raw = (cell) => cell.dataset.v ?? plain(cell);
  const title = (head) => plain(head.querySelector(".sort") ?? head);
  const heads = (table) => [...(table.tHead?.rows[table.tHead.rows.length - 1]?.cells ?? [])];
  const slug = (text) => text.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "") || "table";
  const named = (table) => table.dataset.name || slug(table.caption ? plain(table.caption) : table.id);
  // With those that are held back.
  const rowsOf = (table) => { csit.complete(); return [...table.tBodies].flatMap((body) => [...body.rows]); };
  const visible = (table) => rowsOf(table).filter((row) => !row.hidden);

  // A spreadsheet would run text that begins like a formula.
  const harmless = (text) => (/^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text);
  const field = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  function csv(table) {
    const first = heads(table).map((head) => head.dataset.head ?? title(head));
    const lines = [first, ...visible(table).map((row) => [...row.cells].map(raw))];
    return `${lines.map((line) => line.map(harmless).map(field).join(",")).join("\n")}\n`;
  }

  function markdown(table) {
    const safe = (cell) => title(cell).replaceAll("\\", "\\\\").replaceAll("|", "\\|").replaceAll("<", "&lt;");
    const line = (texts) => `| ${texts.join(" | ")} |`;
    const first = heads(table);
    const rule = first.map((head) => (head.classList.contains("num") ? "---:" : "---"));
    return `${[line(first.map(safe)), line(rule), ...visible(table).map((row) => line([...row.cells].map(safe)))]
      .join("\n")}\n`;
  }

  function sort(table, head) {
    csit.complete();
    const all = heads(table), column = all.indexOf(head), numeric = head.dataset.sort === "number";
    const down = head.getAttribute("aria-sort") === "ascending";
    all.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const order = new Intl.Collator("en", { numeric: true });
    [...table.tBodies].forEach((body) => {
      const keyed = [...body.rows].map((row) => [raw(row.cells[column]), row]);
      keyed.sort(([a], [b]) => {
        if (a === "" || b === "") return (a === "") - (b === "");
        return (numeric ? a - b : order.compare(a, b)) * (down ? -1 : 1);
      });
      body.append(...keyed.map(([, row]) => row));
    });
  }

  function sortable(table) {
    heads(table).filter((head) => head.dataset.sort).forEach((head) => {
      const asks = head.querySelectorAll(".ask");
      const button = csit.make("button", { type: "button", class: "sort" }, ...head.childNodes);
      button.addEventListener("click", () => sort(table, head));
      head.append(button, ...asks);
    });
  }

  const FEWEST_ROWS = 8;
  function filter(table, total, tools) {
    const box = csit.make("input", { type: "search", autocomplete: "off", spellcheck: "false" });
    box.placeholder = table.dataset.example ?? "";
    const count = csit.make("span", { class: "shown", "aria-live": "polite" });
    let texts = null;
    const apply = () => {
      const rows = rowsOf(table);
      texts ??= new Map(rows.map((row) => [row, plain(row).toLowerCase()]));
      const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
      rows.forEach((row) => { row.hidden = !words.every((word) => texts.get(row).includes(word)); });
      count.textContent = `${grouped(rows.filter((row) => !row.hidden).length)} of ${grouped(rows.length)} ${table.dataset.rows ?? "rows"}`;
    };
    count.textContent = `${grouped(total)} of ${grouped(total)} ${table.dataset.rows ?? "rows"}`;
    box.addEventListener("input", () => {
      apply();
      if ("address" in table.dataset) {
        history.replaceState(null, "", box.value ? `#filter=${encodeURIComponent(box.value)}` : location.pathname);
      }
    });
    tools.append(csit.make("label", {}, "Filter ", box), count);
    return (words) => { box.value = words; apply(); table.scrollIntoView(); };
  }

  function equip(table) {
    const total = Number(table.dataset.total ?? [...table.tBodies].reduce((sum, body) => sum + body.rows.length, 0));
    if (!total) return;
    const tools = csit.make("div", { class: "tools" });
    if (total >= FEWEST_ROWS && table.dataset.filter !== "no" || "address" in table.dataset) {
      const set = filter(table, total, tools);
      if ("address" in table.dataset) csit.addresses.filter ??= set;
    }
    const save = csit.make("span", { class: "saves" });
    save.append(
      csit.button("CSV", "Save as CSV", () => csit.save(`${named(table)}.csv`, csv(table), "text/csv")),
      csit.button("Markdown", "Save as Markdown", () => csit.save(`${named(table)}.md`, markdown(table), "text/markdown")),
    );
    tools.append(save);
    const map = table.closest(".map");
    if (map) map.append(tools); else (table.closest(".scroll") ?? table).before(tools);
    sortable(table);
  }
  csit.onContent((root) => csit.all(root, "table.data").forEach(equip));
  // What is wider than its window is scrolled by keyboard, too.
  csit.onContent((root) => csit.all(root, ".scroll").forEach((box) => { if (!box.querySelector("a, button, input, [tabindex]")) box.tabIndex = 0; }));
  csit.equip = equip;

  // On a phone a row of a table that is too wide is a card: its cells have the names of their columns. `FEW` columns are
  // taken to be too wide where a table is folded away.
  const FEW = 4, LONG = 40;
  const phone = matchMedia("(max-width: 560px)");
  const names = new WeakMap();
  function carded(row) {
    const table = row.closest("table");
    if (!names.has(table)) {
      names.set(table, heads(table).map(title));
      const fits = table.offsetParent ? table.offsetWidth <= table.parentElement.clientWidth : heads(table).length < FEW;
      table.classList.toggle("cards", !fits);
    }
    [...row.cells].forEach((cell, at) => {
      cell.dataset.label = names.get(table)[at] ?? "";
      cell.classList.toggle("long", plain(cell).length > LONG);
    });
  }
  if (phone.matches) csit.onContent((root) => csit.all(root, "table.data:not(.heat) > tbody > tr").forEach(carded));

  // Heads of long tables stay below the navigation, which is as high as its lines.
  const nav = document.querySelector("nav.page");
  if (nav) new ResizeObserver(() => document.documentElement.style.setProperty("--nav-height", `${nav.offsetHeight}px`)).observe(nav);
}
