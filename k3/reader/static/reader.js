// Keys, the help dialog, code folding on narrow windows. Text never needs this file.

const KEYS = [
  ["j", "k", "next, previous claim"],
  ["n", "p", "next, previous chapter"],
  ["/", "", "search"],
  ["c", "", "open or close all code and theorems"],
  ["?", "", "this list"],
  ["Esc", "", "close"],
];
const STORED = "k3-reader-keys";
const claims = () => [...document.querySelectorAll("article.claim")];
const enabled = () => read() !== "off";
let at = -1;

function read() {
  try { return localStorage.getItem(STORED); } catch { return null; }
}

function keep(value) {
  try { localStorage.setItem(STORED, value); } catch { /* the choice lasts this page */ }
}

function go(step) {
  const all = claims();
  if (!all.length) return;
  const active = document.activeElement?.closest?.("article.claim");
  const from = active ? all.indexOf(active) : at;
  at = Math.max(0, Math.min(all.length - 1, from + step));
  all.forEach((each, i) => each.classList.toggle("here", i === at));
  all[at].scrollIntoView({block: "start"});
  all[at].focus({preventScroll: true});
  history.replaceState(null, "", `#${all[at].id}`);
}

function turn(rel) {
  document.querySelector(`.around a[rel=${rel}]`)?.click();
}

function fold() {
  const all = [...document.querySelectorAll("main details")];
  const open = all.some((each) => !each.open);
  for (const each of all) each.open = open;
}

function dialog() {
  const found = document.querySelector("dialog.keys");
  if (found) return found;
  const made = document.createElement("dialog");
  made.className = "keys";
  made.setAttribute("aria-labelledby", "keys-title");
  const rows = KEYS.map(([a, b, words]) => {
    const second = b ? ` <kbd>${b}</kbd>` : "";
    return `<tr><td><kbd>${a}</kbd>${second}</td><td>${words}</td></tr>`;
  });
  made.innerHTML = `<h2 id="keys-title">Keys</h2><table>${rows.join("")}</table>
    <label><input type="checkbox"> Single keys are on</label>
    <p><button type="button" class="button">Close</button></p>`;
  const box = made.querySelector("input");
  box.checked = enabled();
  box.addEventListener("change", () => keep(box.checked ? "on" : "off"));
  made.querySelector("button").addEventListener("click", () => made.close());
  document.body.append(made);
  return made;
}

const ACTIONS = {
  j: () => go(1),
  k: () => go(-1),
  n: () => turn("next"),
  p: () => turn("prev"),
  c: fold,
  "/": () => document.getElementById("q").focus(),
  "?": () => dialog().showModal(),
};

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
  if (event.key === "Escape" && typing) typing.blur();
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (document.querySelector("dialog[open]")) return;
  // ? always opens the list: it is where the keys are switched on again.
  const action = ACTIONS[event.key];
  if (!action || (event.key !== "?" && !enabled())) return;
  event.preventDefault();
  action();
});

// A link to a claim inside a folded part, or a narrow window that starts folded.
if (matchMedia("(max-width: 62rem)").matches) {
  document.querySelector(".contents")?.removeAttribute("open");
}
const first = location.hash && document.getElementById(location.hash.slice(1));
if (first?.matches?.("article.claim")) {
  at = claims().indexOf(first);
  first.classList.add("here");
}
