// Heat maps with choices (`cell_maps.CellMaps`): the table is there for the first choice, the others are put into it.
{
  function put(cell, colours, [text, note, state, step, tip, raw]) {
    cell.className = `c-${state}`;
    cell.dataset.tip = tip;
    cell.dataset.v = raw;
    [cell.style.background, cell.style.color] = step === null ? ["", ""] : colours[step];
    cell.querySelector("b").textContent = text;
    cell.querySelector("small").textContent = note;
  }

  csit.onContent((root) => csit.all(root, "[data-choices]").forEach((group) => {
    const { selectors, variants } = csit.figures[group.dataset.choices];
    const chosen = group.dataset.first.split("|");
    const tables = [...group.querySelectorAll("table.heat")];
    function show() {
      const { ends, maps } = variants[chosen.join("|")];
      tables.forEach((table, at) => [...table.tBodies[0].rows].forEach((row, line) => {
        [...row.querySelectorAll("td")].forEach((cell, column) => put(cell, variants.colours, maps[at][line][column]));
      }));
      group.querySelector(".chosen").textContent = chosen.join(" · ");
      group.querySelector(".scale").hidden = ends[0] === "";
      group.querySelector(".scale .low").textContent = ends[0];
      group.querySelector(".scale .high").textContent = ends[1];
    }
    const place = group.querySelector(".choices");
    selectors.forEach((choices, at) => {
      if (choices.length < 2) return;
      place.append(csit.choice("", choices, chosen[at], (choice) => { chosen[at] = choice; show(); }));
    });
  }));
}
