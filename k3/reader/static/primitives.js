// The primitives of a typed graph in float64, one entry of RULES for each one of
// k3/graph/primitives.py, with the meaning that k3/graph/evaluate.py gives it.
// No equation of the paper is here: those are graphs.

import {count, parse, sizeOf} from "./dims.js";

/** The exact number text of an attribute, such as "1/100000", as a float. */
function number(text) {
  const [above, below] = text.split("/");
  return below === undefined ? Number(above) : Number(above) / Number(below);
}

const make = (shape, entry) => Float64Array.from({length: count(shape)}, (_, i) => entry(i));
const each = (f) => ({args: [x]}) => x.data.map(f);
const pair = (f) => ({args: [a, b]}) => a.data.map((x, i) => f(x, b.data[i]));
const sizeAttr = (call, name) => sizeOf(parse(call.attrs[name]), call.sizes);

const sigmoid = (x) => 1 / (1 + Math.exp(-x));
const softplus = (x) => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));

/** The error function by a series of positive terms: no cancellation. */
function erf(x) {
  if (Math.abs(x) > 6) return Math.sign(x);
  let term = x;
  let sum = x;
  for (let n = 1; Math.abs(term) > 1e-18 * Math.abs(sum); n += 1) {
    term *= (2 * x * x) / (2 * n + 1);
    sum += term;
  }
  return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum;
}

function gelu(call) {
  const inner = call.attrs.kind === "erf"
    ? (x) => erf(x / Math.SQRT2)
    : (x) => Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x * x * x));
  return call.args[0].data.map((x) => (x * (1 + inner(x))) / 2);
}

/** f on each row of the last axis, a row in and a row out. */
const rows = (f) => (call) => {
  const {shape, data} = call.args[0];
  const width = shape[shape.length - 1];
  const out = [];
  for (let i = 0; i < data.length; i += width) {
    out.push(...f(data.slice(i, i + width), call));
  }
  return Float64Array.from(out);
};

const addUp = (row) => row.reduce((a, b) => a + b, 0);

const softmax = rows((row) => {
  const top = Math.max(...row);
  const e = row.map((x) => Math.exp(x - top));
  const all = addUp(e);
  return e.map((x) => x / all);
});

const unitRms = rows((row, {attrs}) => {
  const square = addUp(row.map((x) => x * x)) / row.length;
  const root = Math.sqrt(square + number(attrs.eps));
  return row.map((x) => x / root);
});

const l2Norm = rows((row, {attrs}) => {
  const root = Math.sqrt(addUp(row.map((x) => x * x)) + number(attrs.eps));
  return row.map((x) => x / root);
});

/** Places from the largest to the smallest, equal ones by lower index. */
const order = (row) => [...row.keys()].sort((i, j) => row[j] - row[i] || i - j);

const before = rows((row) => {
  let sum = 0;
  return row.map((x) => (sum += x) - x);
});

/** The steps of each axis of a shape in row-major order. */
const strides = (shape) => shape.map((_, i) => count(shape.slice(i + 1)));

/** Visits every index of a shape as coordinates. */
function visit(shape, see) {
  const at = shape.map(() => 0);
  for (let i = count(shape), place = 0; place < i; place += 1) {
    see(at, place);
    for (let axis = shape.length - 1; axis >= 0; axis -= 1) {
      at[axis] += 1;
      if (at[axis] < shape[axis]) break;
      at[axis] = 0;
    }
  }
}

const dot = (at, steps) => at.reduce((sum, i, axis) => sum + i * steps[axis], 0);

/** Each entry of the result from one place of the first operand. */
function move(call, from) {
  const {shape, data} = call.args[0];
  const steps = strides(shape);
  const out = new Float64Array(count(call.shape));
  visit(call.shape, (at, place) => (out[place] = data[dot(from(at), steps)]));
  return out;
}

function contract({args, attrs, shape}) {
  const [left, right] = attrs.axes.split("->");
  const groups = left.split(",");
  const size = {};
  groups.forEach((g, i) => [...g].forEach((c, axis) => (size[c] = args[i].shape[axis])));
  const inner = Object.keys(size).filter((c) => !right.includes(c));
  const letters = [...right, ...inner];
  const steps = groups.map((g, i) => {
    const own = strides(args[i].shape);
    return letters.map((c) => (g.includes(c) ? own[g.indexOf(c)] : 0));
  });
  const out = new Float64Array(count(shape));
  const depth = count(inner.map((c) => size[c]));
  visit(letters.map((c) => size[c]), (at, place) => {
    let product = 1;
    steps.forEach((step, i) => (product *= args[i].data[dot(at, step)]));
    out[Math.floor(place / depth)] += product;
  });
  return out;
}

function matmul({args: [a, b], shape}) {
  const [m, k] = a.shape.slice(-2);
  const n = b.shape[b.shape.length - 1];
  return make(shape, (place) => {
    const batch = Math.floor(place / (m * n));
    const [i, j] = [Math.floor((place % (m * n)) / n), place % n];
    let sum = 0;
    for (let x = 0; x < k; x += 1) {
      sum += a.data[(batch * m + i) * k + x] * b.data[(batch * k + x) * n + j];
    }
    return sum;
  });
}

function reduce({args: [x], attrs, shape}) {
  const kept = x.shape.map((_, i) => i).filter((i) => !attrs.axes.includes(i));
  const steps = strides(shape);
  const out = new Float64Array(count(shape));
  visit(x.shape, (at, place) => (out[dot(kept.map((i) => at[i]), steps)] += x.data[place]));
  return out;
}

function concat({args, attrs: {axis}, shape}) {
  const out = new Float64Array(count(shape));
  const steps = strides(shape);
  let start = 0;
  for (const part of args) {
    const shift = start * steps[axis];
    visit(part.shape, (at, place) => (out[dot(at, steps) + shift] = part.data[place]));
    start += part.shape[axis];
  }
  return out;
}

function stack(call) {
  const {axis} = call.attrs;
  const open = (shape) => [...shape.slice(0, axis), 1, ...shape.slice(axis)];
  const args = call.args.map((x) => ({shape: open(x.shape), data: x.data}));
  return concat({...call, args});
}

/** Rows of an axis picked by integers, whose axes take its place. */
function gather(call) {
  const {axis} = call.attrs;
  const [, index] = call.args;
  const [rank, steps] = [index.shape.length, strides(index.shape)];
  return move(call, (at) => [
    ...at.slice(0, axis),
    index.data[dot(at.slice(axis, axis + rank), steps)],
    ...at.slice(axis + rank),
  ]);
}

/** Weights by which a table of positions is stretched: half pixels, clamped. */
function bilinear({shape: [out, table]}) {
  const weights = new Float64Array(out * table);
  for (let i = 0; i < out; i += 1) {
    const place = Math.max(((i + 0.5) * table) / out - 0.5, 0);
    const low = Math.min(Math.floor(place), table - 1);
    const share = place - low;
    weights[i * table + low] += 1 - share;
    weights[i * table + Math.min(low + 1, table - 1)] += share;
  }
  return weights;
}

function rmsNorm(call) {
  const [x, weight] = call.args;
  const width = weight.data.length;
  return unitRms({...call, args: [x]}).map((y, i) => y * weight.data[i % width]);
}

function slice(call) {
  const start = sizeAttr(call, "start");
  const {axis} = call.attrs;
  return move(call, (at) => at.map((i, a) => (a === axis ? i + start : i)));
}

export const RULES = {
  input: ({inputs, attrs}) => inputs[attrs.name].data,
  constant: ({attrs}) => [number(attrs.value)],
  size: (call) => [sizeAttr(call, "dim")],
  positions: ({shape}) => make(shape, (i) => i),
  bilinear,
  add: pair((a, b) => a + b),
  sub: pair((a, b) => a - b),
  mul: pair((a, b) => a * b),
  div: pair((a, b) => a / b),
  neg: each((x) => -x),
  scale: ({args: [x], attrs}) => x.data.map((v) => v * number(attrs.factor)),
  exp: each(Math.exp),
  log: each(Math.log),
  sqrt: each(Math.sqrt),
  tanh: each(Math.tanh),
  sigmoid: each(sigmoid),
  silu: each((x) => x * sigmoid(x)),
  softplus: each(softplus),
  gelu,
  sin: each(Math.sin),
  cos: each(Math.cos),
  softmax,
  unit_rms: unitRms,
  rms_norm: rmsNorm,
  l2_norm: l2Norm,
  contract,
  matmul,
  outer: ({args: [a, b], shape}) => make(shape, (i) =>
    a.data[Math.floor(i / b.data.length)] * b.data[i % b.data.length]),
  permute: (call) => move(call, (at) => {
    const from = [];
    call.attrs.order.forEach((axis, i) => (from[axis] = at[i]));
    return from;
  }),
  reshape: ({args: [x]}) => x.data,
  broadcast: (call) => move(call, (at) => call.attrs.axes.map((axis) => at[axis])),
  concat,
  slice,
  stack,
  flip: (call) => move(call, (at) => at.map((i, axis) =>
    (axis === call.attrs.axis ? call.shape[axis] - 1 - i : i))),
  sum: reduce,
  mean: (call) => {
    const all = count(call.attrs.axes.map((axis) => call.args[0].shape[axis]));
    return reduce(call).map((x) => x / all);
  },
  gather,
  topk: rows((row, call) => order(row).slice(0, sizeAttr(call, "k"))),
  argsort: rows(order),
  one_hot: ({args: [index], shape}) => {
    const width = shape[shape.length - 1];
    return make(shape, (i) => Number(index.data[Math.floor(i / width)] === i % width));
  },
  where: ({args: [choice, yes, no]}) =>
    make(choice.shape, (i) => (choice.data[i] ? yes : no).data[i]),
  equal: pair((a, b) => Number(a === b)),
  less: pair((a, b) => Number(a < b)),
  count: ({args: [x]}) => x.data,
  before,
  within: ({args: [x]}) => x.data,
};
