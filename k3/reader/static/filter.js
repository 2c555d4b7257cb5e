// Filters the claims of the status page by mark.

for (const place of document.querySelectorAll("[data-filter]")) {
  const table = document.getElementById(place.dataset.filter);
  const rows = [...table.querySelectorAll("tbody tr[data-words]")];
  const words = [...new Set(rows.flatMap((row) => row.dataset.words.split(" ")))];
  const buttons = ["all", ...words].map((word) => {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = word === "reported" ? "reported only" : word;
    made.setAttribute("aria-pressed", String(word === "all"));
    made.addEventListener("click", () => choose(word, made));
    return made;
  });
  const said = document.createElement("span");
  said.setAttribute("role", "status");
  place.setAttribute("role", "group");
  place.setAttribute("aria-label", "Show claims that are");
  place.append(...buttons, said);

  function choose(word, pressed) {
    let count = 0;
    for (const row of rows) {
      row.hidden = word !== "all" && !row.dataset.words.split(" ").includes(word);
      count += !row.hidden;
    }
    for (const each of buttons) {
      each.setAttribute("aria-pressed", String(each === pressed));
    }
    said.textContent = `${count} of ${rows.length} claims`;
  }
}
