// Small makers of HTML and SVG, and numbers as text.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attrs, children) {
  for (const [name, value] of Object.entries(attrs)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== false && value !== undefined) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat());
  return node;
}

export const h = (tag, attrs = {}, ...children) =>
  fill(document.createElement(tag), attrs, children);
export const s = (tag, attrs = {}, ...children) =>
  fill(document.createElementNS(SVG, tag), attrs, children);

/** A number to six digits, whole ones whole; what is not defined is a dash. */
export function show(x) {
  if (x === null || !Number.isFinite(x)) return "—";
  if (Number.isInteger(x)) return x.toLocaleString("en-US").replace("-", "−");
  const text = Math.abs(x) < 1e-4 ? x.toExponential(2) : String(Number(x.toPrecision(6)));
  return text.replace("-", "−");
}

/** A short number for a cell. */
export function brief(x) {
  if (x === null || !Number.isFinite(x)) return "—";
  const text = Math.abs(x) >= 1000 ? show(Math.round(x)) : String(Number(x.toFixed(3)));
  return text === "-0" ? "0" : text.replace("-", "−");
}

export const rows = (value) => (Array.isArray(value[0]) ? value : [value]);

/** Numbers as a table whose cells are also shaded by size; signs are written. */
export function matrix(value, {caption, rowNames = [], columnNames = [], hot = false, say = brief}) {
  const table = rows(value);
  const top = Math.max(1e-9, ...table.flat().map((x) => Math.abs(x ?? 0)));
  const head = columnNames.length
    ? [h("thead", {}, h("tr", {}, rowNames.length ? h("td") : [],
      columnNames.map((name) => name ? h("th", {scope: "col"}, name) : h("td"))))]
    : [];
  const body = table.map((row, i) => h("tr", {},
    rowNames.length ? h("th", {scope: "row"}, rowNames[i] ?? "") : [],
    row.map((x) => h("td", {
      style: `--heat:${Math.round((Math.abs(x ?? 0) / top) * 42)}%`,
      class: x < 0 ? "minus" : "plus",
    }, say(x)))));
  return h("table", {class: `k3-matrix${hot ? " hot" : ""}`},
    h("caption", {}, caption), ...head, h("tbody", {}, ...body));
}

/** Horizontal bars with their numbers. */
export function bars(items, {caption, top}) {
  const most = top ?? Math.max(1e-9, ...items.map(({value}) => Math.abs(value ?? 0)));
  return h("table", {class: "k3-bars"}, h("caption", {}, caption), h("tbody", {},
    ...items.map(({name, value, text, note = "", mark = false}) =>
      h("tr", {class: mark ? "mark" : ""},
        h("th", {scope: "row"}, name),
        h("td", {class: "bar"}, h("span", {
          style: `width:${Math.min(100, (Math.abs(value ?? 0) / most) * 100)}%`,
          class: value < 0 ? "minus" : "plus",
        })),
        h("td", {class: "number"}, text ?? brief(value)),
        note ? h("td", {class: "note"}, note) : []))));
}

/** Boxes in a row, each with a sign, a name and a state in words. */
export function boxes(items, {caption}) {
  return h("figure", {class: "k3-boxes"}, h("figcaption", {}, caption),
    h("ol", {}, ...items.map(({name, sign, kind, title}) =>
      h("li", {class: kind ?? "", title: title ?? false},
        h("b", {}, sign), h("span", {}, name)))));
}
