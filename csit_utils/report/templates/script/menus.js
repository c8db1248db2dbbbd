// Menus of the navigation: one closes when something else is clicked, and by Escape.
{
  const close = (but) => document.querySelectorAll("nav.page details[open]").forEach((menu) => { if (menu !== but) menu.open = false; });
  document.addEventListener("click", (event) => close(event.target.closest("nav.page summary")?.parentElement));
  addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    document.activeElement?.closest("nav.page details[open]")?.querySelector("summary").focus();
    close();
  });
}
