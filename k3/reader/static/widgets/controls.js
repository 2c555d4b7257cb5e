// Controls of a widget: sliders with number boxes, grids of numbers, flags, choices.

import {h} from "./dom.js";

const clamp = (x, {low, high}) => Math.min(high, Math.max(low, x));

/** The control as HTML; `set` takes its new value. `sync` shows a value from elsewhere. */
export function control(spec, id, set) {
  const make = {choice, flags, number, size: number, array: grid, integer: grid}[spec.kind];
  return (spec.most ? growing : make)(spec, id, set);
}

const whole = (spec) => (Array.isArray(spec.value) ? spec.value.flat() : [spec.value])
  .every(Number.isInteger) && Number.isInteger(spec.step) && spec.kind !== "array";

function number(spec, id, set) {
  const step = spec.kind === "size" ? Math.max(1, spec.step) : spec.step;
  const limits = {min: spec.low, max: spec.high, step};
  const take = (event) => {
    const x = event.target.valueAsNumber;
    if (Number.isFinite(x)) set(clamp(whole({...spec, step}) ? Math.round(x) : x, spec));
  };
  const slider = h("input", {type: "range", ...limits, oninput: take, "aria-label": `${spec.label}, slider`});
  const box = h("input", {type: "number", ...limits, step: "any", id, onchange: take});
  return {
    node: h("div", {class: "k3-control"}, h("label", {for: id}, spec.label), slider, box),
    sync: (value) => {
      slider.value = value;
      if (document.activeElement !== box || box.valueAsNumber !== value) box.value = tidy(value);
    },
  };
}

const tidy = (x) => String(Number(x.toPrecision(12)));

function grid(spec, id, set) {
  const deep = Array.isArray(spec.value[0]);
  const table = deep ? spec.value : [spec.value];
  let now = table.map((row) => [...row]);
  const boxes = table.map((row, i) => row.map((_, j) => h("input", {
    type: "number", min: spec.low, max: spec.high, step: "any",
    "aria-label": [spec.label, spec.rows?.[i], spec.columns?.[j] ?? j + 1].filter(Boolean).join(", "),
    onkeydown: (event) => nudge(event, spec),
    onchange: (event) => {
      const x = event.target.valueAsNumber;
      if (!Number.isFinite(x)) return;
      now[i][j] = clamp(spec.kind === "integer" ? Math.round(x) : x, spec);
      set(deep ? now.map((r) => [...r]) : [...now[0]]);
    },
  })));
  const body = boxes.map((row, i) => h("tr", {},
    spec.rows ? h("th", {scope: "row"}, spec.rows[i]) : [], row.map((b) => h("td", {}, b))));
  const head = spec.columns
    ? [h("thead", {}, h("tr", {}, spec.rows ? h("td") : [], spec.columns.map((c) => c ? h("th", {scope: "col"}, c) : h("td"))))]
    : [];
  const many = boxes[0].length > 6;
  const inside = many
    ? h("div", {class: "k3-many"}, ...boxes.flat())
    : h("table", {}, ...head, h("tbody", {}, ...body));
  return {
    node: h("fieldset", {class: "k3-grid"}, h("legend", {}, spec.label), inside),
    sync: (value) => {
      now = (deep ? value : [value]).map((row) => [...row]);
      boxes.forEach((row, i) => row.forEach((b, j) => (b.value = tidy(now[i][j]))));
    },
  };
}

/** A list to which numbers are added and from which they are removed, at its end. */
function growing(spec, id, set) {
  let now = [...spec.value];
  const place = h("div", {class: "k3-many"});
  const take = (i) => (event) => {
    const x = event.target.valueAsNumber;
    if (Number.isFinite(x)) set(now.map((old, j) => (j === i ? clamp(x, spec) : old)));
  };
  const box = (i) => h("input", {
    type: "number", min: spec.low, max: spec.high, step: "any", "aria-label": `${spec.label}, ${i + 1}`,
    onkeydown: (event) => nudge(event, spec), onchange: take(i),
  });
  const more = h("button", {type: "button", onclick: () => set([...now, now[now.length - 1]])}, "Add one");
  const less = h("button", {type: "button", onclick: () => set(now.slice(0, -1))}, "Remove one");
  return {
    node: h("fieldset", {class: "k3-grid"}, h("legend", {}, spec.label), place,
      h("div", {class: "k3-actions"}, more, less)),
    sync: (value) => {
      now = [...value];
      while (place.children.length > now.length) place.lastChild.remove();
      while (place.children.length < now.length) place.append(box(place.children.length));
      now.forEach((x, i) => (place.children[i].value = tidy(x)));
      more.disabled = now.length >= spec.most;
      less.disabled = now.length <= spec.least;
    },
  };
}

/** Arrow keys move by the control's step; the browser's own step is "any". */
function nudge(event, spec) {
  const by = {ArrowUp: 1, ArrowDown: -1}[event.key];
  if (!by) return;
  event.preventDefault();
  event.target.value = tidy(clamp(event.target.valueAsNumber + by * spec.step, spec));
  event.target.dispatchEvent(new Event("change"));
}

function flags(spec, id, set) {
  let now = [...spec.value];
  const boxes = spec.value.map((_, i) => h("input", {
    type: "checkbox",
    onchange: (event) => set(now.map((x, j) => (j === i ? Number(event.target.checked) : x))),
  }));
  return {
    node: h("fieldset", {class: "k3-flags"}, h("legend", {}, spec.label),
      ...boxes.map((box, i) => h("label", {}, box, spec.columns[i]))),
    sync: (value) => {
      now = [...value];
      boxes.forEach((box, i) => (box.checked = Boolean(value[i])));
    },
  };
}

function choice(spec, id, set) {
  const box = h("select", {id, onchange: (event) => set(event.target.value)},
    ...spec.options.map((option) => h("option", {value: option}, option)));
  return {
    node: h("div", {class: "k3-control"}, h("label", {for: id}, spec.label), box),
    sync: (value) => (box.value = value),
  };
}
