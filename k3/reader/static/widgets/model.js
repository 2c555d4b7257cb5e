// The state of a widget and its numbers: no drawing here, so tests run it alone.

import {run} from "../graph.js";

export const start = (data) =>
  Object.fromEntries(data.controls.map((c) => [c.name, structuredClone(c.value)]));

/** Inputs and sizes of the graph that a state runs. */
function bound(data, state) {
  const env = {...data.fixed};
  const sizes = {...data.sizes};
  for (const {name, kind} of data.controls) {
    if (kind === "size") sizes[name] = state[name];
    else if (kind !== "choice") env[name] = state[name];
  }
  return {env, sizes};
}

/** The outputs of a state by name. */
export function evaluate(data, state) {
  if (data.table) return data.table[JSON.stringify(data.controls.map((c) => state[c.name]))];
  const {env, sizes} = bound(data, state);
  return run(data.graphs[data.variant ? state[data.variant] : ""], env, sizes).outputs;
}

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

/** The state as an address: only what differs from the start. */
export function address(data, state) {
  const initial = start(data);
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) {
    if (!same(value, initial[name])) query.set(name, typeof value === "string" ? value : JSON.stringify(value));
  }
  const text = query.toString();
  return `#widget-${data.name}${text && `?${text}`}`;
}

/** The state of an address, null if it is of something else. What does not fit is left. */
export function fromAddress(data, hash) {
  const [place, text = ""] = hash.replace(/^#/, "").split("?");
  if (place !== `widget-${data.name}`) return null;
  const state = start(data);
  for (const [name, value] of new URLSearchParams(text)) {
    const control = data.controls.find((c) => c.name === name);
    const read = control && parse(control, value);
    if (read !== undefined) state[name] = read;
  }
  return state;
}

function parse(control, text) {
  if (control.kind === "choice") return control.options.includes(text) ? text : undefined;
  try {
    const value = JSON.parse(text);
    const inside = [value].flat(2).every((x) => Number.isFinite(x) && x >= control.low && x <= control.high);
    return inside && fits(control, value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** A list that may grow is of any length within its limits. */
const fits = (control, value) => (control.most
  ? same(shape(value), shape(value).map(() => 0)) && value.length >= control.least && value.length <= control.most
  : same(shape(value), shape(control.value)));

const shape = (value) => (Array.isArray(value) ? value.map(shape) : 0);

/** Python that gives these numbers. JSON literals are Python literals here. */
export function python(data, state) {
  const given = Object.entries({...state, ...data.given}).map(([name, value]) => `    ${name}=${JSON.stringify(value)},`);
  return `${data.code}\n\nprint(${data.call}(\n${given.join("\n")}\n))\n`;
}

const flat = (value) => [value].flat(Infinity);

/** The largest difference between two sets of outputs, relative beyond 1. */
export function difference(ours, theirs) {
  let worst = 0;
  for (const [name, value] of Object.entries(theirs)) {
    const [a, b] = [flat(ours[name]), flat(value)];
    if (a.length !== b.length) return Infinity;
    a.forEach((x, i) => {
      const y = b[i];
      const bare = !Number.isFinite(x ?? NaN) && y === null;
      if (!bare) worst = Math.max(worst, Math.abs(x - y) / Math.max(1, Math.abs(y)) || (x === y ? 0 : NaN));
    });
  }
  return worst;
}

/** What the server answers; its refusal is an error. */
export async function post(path, body) {
  const answer = await fetch(path, {
    method: "POST",
    headers: {"content-type": "application/json"},
    body: JSON.stringify(body),
  });
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.error);
  return found;
}
