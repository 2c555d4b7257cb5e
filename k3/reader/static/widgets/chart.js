// A line chart in SVG: curves, marks, and points that are dragged or moved by keys.

import {brief, s} from "./dom.js";

const [H, L, B, T, R] = [250, 46, 30, 12, 14];
let W = 520;

/** Charts are as wide as their place, so that their words keep their size. */
export const fit = (pixels) => {
  W = Math.round(Math.min(640, Math.max(280, pixels || 520)));
};

const line = (x, y) => (points) => points
  .filter(([, b]) => Number.isFinite(b))
  .map(([a, b], i) => `${i ? "L" : "M"}${x(a).toFixed(2)} ${y(b).toFixed(2)}`).join("");

/** Values at which the axis has ticks: about four, on 1, 2 or 5 times a power of ten. */
function ticks([low, high]) {
  const raw = (high - low) / 4;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((m) => m >= raw);
  const out = [];
  for (let t = Math.ceil(low / step) * step; t <= high + 1e-9; t += step) out.push(t);
  return out;
}

/** The range of some values with a little air. */
export function range(values, least = 1) {
  const finite = values.filter(Number.isFinite);
  const [low, high] = [Math.min(...finite), Math.max(...finite)];
  const air = Math.max(high - low, least) * 0.06;
  return [low - air, high + air];
}

/** lines: {points, name, dash}; marks: {x or y, name}; point: {x, y, name, move}. */
export function chart({x: xs, y: ys, lines, marks = [], points = [], label, xName, yName}) {
  const x = (a) => L + ((a - xs[0]) / (xs[1] - xs[0])) * (W - L - R);
  const y = (b) => H - B - ((b - ys[0]) / (ys[1] - ys[0])) * (H - B - T);
  const clip = `clip-${Math.random().toString(36).slice(2)}`;
  const svg = s("svg", {viewBox: `0 0 ${W} ${H}`, class: "k3-chart", role: "group", "aria-label": label});
  svg.append(
    s("clipPath", {id: clip}, s("rect", {x: L, y: T, width: W - L - R, height: H - B - T})),
    s("g", {class: "grid", "aria-hidden": "true"},
      ...ticks(xs).flatMap((t) => [
        s("line", {x1: x(t), x2: x(t), y1: T, y2: H - B}),
        s("text", {x: x(t), y: H - B + 16, "text-anchor": "middle"}, brief(t)),
      ]),
      ...ticks(ys).flatMap((t) => [
        s("line", {x1: L, x2: W - R, y1: y(t), y2: y(t)}),
        s("text", {x: L - 6, y: y(t) + 4, "text-anchor": "end"}, brief(t)),
      ]),
      s("text", {x: W - R, y: H - 2, "text-anchor": "end", class: "axis"}, xName),
      s("text", {x: L + 4, y: T + 10, class: "axis"}, yName)),
    s("g", {"clip-path": `url(#${clip})`, "aria-hidden": "true"},
      ...marks.map(({x: a, y: b}) => (a === undefined
        ? s("line", {x1: L, x2: W - R, y1: y(b), y2: y(b), class: "mark"})
        : s("line", {x1: x(a), x2: x(a), y1: T, y2: H - B, class: "mark"}))),
      ...lines.map(({points: at, kind}) => s("path", {d: line(x, y)(at), class: `curve ${kind ?? ""}`}))),
    s("g", {"aria-hidden": "true"}, ...lines.map((one) => named(one, x, y, xs, ys)),
      ...marks.filter((m) => m.name).map(({x: a, y: b, name}) => s("text", {
        class: "name", x: a === undefined ? W - R - 4 : x(a) + 4,
        y: a === undefined ? y(b) - 4 : T + 24, "text-anchor": a === undefined ? "end" : "start",
      }, name))),
    ...points.map((p) => handle(svg, p, x, y, xs, ys)));
  return svg;
}

/** The name of a curve beside one of its points in view, `place` of the way along. */
function named({points: at, name, kind, place = 0.93}, x, y, xs, ys) {
  const seen = at.filter(([a, b]) => a <= xs[1] && b >= ys[0] && b <= ys[1]);
  const [a, b] = seen[Math.floor((seen.length - 1) * place)] ?? at[0];
  const left = x(a) < L + 90;
  return s("text", {x: x(a) + (left ? 8 : -4), y: Math.max(y(b) - 7, T + 24),
    "text-anchor": left ? "start" : "end", class: `name ${kind ?? ""}`}, name);
}

function handle(svg, {x: a, y: b, name, move, step}, x, y, xs, ys) {
  const at = {cx: x(a), cy: Math.min(H - B, Math.max(T, y(b)))};
  if (!move) return s("circle", {...at, r: 4, class: "dot"}, s("title", {}, name));
  const key = (event) => {
    const by = {ArrowRight: step, ArrowUp: step, ArrowLeft: -step, ArrowDown: -step}[event.key];
    if (!by) return;
    event.preventDefault();
    move(a + by * (event.shiftKey ? 10 : 1), true);
  };
  const down = (event) => {
    event.preventDefault();
    // The chart is drawn anew while the point moves: its box is that of the start.
    const box = svg.getBoundingClientRect();
    const drag = (moved) => {
      const place = ((moved.clientX - box.left) / box.width) * W;
      move(xs[0] + ((place - L) / (W - L - R)) * (xs[1] - xs[0]));
    };
    const stop = () => window.removeEventListener("pointermove", drag);
    window.addEventListener("pointermove", drag);
    window.addEventListener("pointerup", stop, {once: true});
    window.addEventListener("pointercancel", stop, {once: true});
  };
  return s("circle", {
    ...at, r: 8, class: "handle", tabindex: 0, role: "slider", "aria-label": name,
    "aria-valuemin": xs[0], "aria-valuemax": xs[1], "aria-valuenow": brief(a).replace("−", "-"),
    "aria-valuetext": `${brief(a)}, value ${brief(b)}`, onkeydown: key, onpointerdown: down,
  });
}

/** Points of a function over a range. */
export const sample = ([low, high], f, n = 121) =>
  Array.from({length: n}, (_, i) => low + ((high - low) * i) / (n - 1)).map((v) => [v, f(v)]);
