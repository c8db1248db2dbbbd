// The page of help: a filter of its explanations, which looks in their texts too.
{
  const filter = document.getElementById("help-filter");
  if (filter) filter.parentElement.hidden = false;
  filter?.addEventListener("input", () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    document.querySelectorAll(".readings").forEach((section) => {
      const own = [...section.querySelectorAll(".reading")];
      own.forEach((one) => { one.hidden = !words.every((word) => one.textContent.toLowerCase().includes(word)); });
      section.hidden = own.every((one) => one.hidden);
    });
  });
}
