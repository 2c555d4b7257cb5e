// Search as you type, and the page of results. The index is loaded at first use.

const box = document.getElementById("q");
const list = document.getElementById("found");
const MOST = 8;
let rows = null;
let chosen = -1;

async function load() {
  rows ??= await (await fetch("static/data/search.json")).json();
  return rows;
}

const fold = (text) => text.normalize("NFKD").toLowerCase();

/** How well a row holds all words: title before words, whole before part; 0 is not. */
function score([, title, where, words], wanted) {
  const [head, rest] = [fold(title), fold(`${where} ${words}`)];
  let total = 0;
  for (const word of wanted) {
    const inTitle = head.indexOf(word);
    const inRest = rest.indexOf(word);
    if (inTitle < 0 && inRest < 0) return 0;
    if (inTitle >= 0) total += inTitle === 0 || head[inTitle - 1] === " " ? 12 : 6;
    else total += inRest === 0 || /\W/.test(rest[inRest - 1]) ? 3 : 1;
  }
  return total + (where === "chapter" ? 4 : where === "theorem" ? -1 : 0);
}

/** Rows that hold every word of the query, best first. */
export function find(all, query) {
  const wanted = fold(query).split(/\s+/).filter(Boolean);
  if (!wanted.length) return [];
  return all
    .map((row) => [score(row, wanted), row])
    .filter(([points]) => points > 0)
    .sort((a, b) => b[0] - a[0])
    .map(([, row]) => row);
}

function item([address, title, where], tag = "li") {
  const made = document.createElement(tag);
  const link = document.createElement(tag === "li" ? "a" : "span");
  if (tag === "li") link.href = address;
  link.textContent = title;
  const small = document.createElement("small");
  small.textContent = where;
  made.append(link, " ", small);
  return made;
}

function option(row, at) {
  const made = document.createElement("li");
  made.append(...item(row, "div").childNodes);
  made.id = `found-${at}`;
  made.setAttribute("role", "option");
  made.addEventListener("mousedown", (event) => event.preventDefault());
  made.addEventListener("click", () => { location.href = row[0]; });
  return made;
}

function close() {
  list.hidden = true;
  chosen = -1;
  box.setAttribute("aria-expanded", "false");
  box.removeAttribute("aria-activedescendant");
}

function mark() {
  [...list.children].forEach((each, at) => {
    each.setAttribute("aria-selected", String(at === chosen));
  });
  if (chosen < 0) box.removeAttribute("aria-activedescendant");
  else box.setAttribute("aria-activedescendant", `found-${chosen}`);
  list.children[chosen]?.scrollIntoView({block: "nearest"});
}

async function show() {
  const query = box.value;
  const found = find(await load(), query).slice(0, MOST);
  if (query !== box.value) return;
  chosen = -1;
  list.replaceChildren(...found.map(option));
  list.hidden = !found.length;
  box.setAttribute("aria-expanded", String(!list.hidden));
  mark();
}

function key(event) {
  const count = list.hidden ? 0 : list.children.length;
  if (event.key === "Escape") close();
  else if (event.key === "Enter" && chosen >= 0) {
    event.preventDefault();
    list.children[chosen].click();
  } else if (count && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
    event.preventDefault();
    const step = event.key === "ArrowDown" ? 1 : -1;
    chosen = chosen < 0 && step < 0 ? count - 1 : (chosen + step + count) % count;
    mark();
  }
}

async function results() {
  const query = new URLSearchParams(location.search).get("q");
  if (!query) return;
  box.value = query;
  const found = find(await load(), query);
  document.getElementById("results").replaceChildren(...found.map((row) => item(row)));
  const what = found.length === 1 ? "1 place has" : `${found.length} places have`;
  document.getElementById("count").textContent = `${what} “${query}”.`;
}

box.addEventListener("input", show);
box.addEventListener("keydown", key);
box.addEventListener("blur", close);
if (document.documentElement.dataset.page === "search") results();
