// Runs a typed graph (schema k3.graph/1, made by k3/graph/json_form.py) in float64.
//
// A tensor is {shape, data}: sizes, and entries row-major. Booleans are 0 and 1.

import {bind, count, parse, sizeOf} from "./dims.js";
import {RULES} from "./primitives.js";

const tensor = (shape, data) => ({shape, data});

/** Nested lists (or a number) as a tensor. */
export function fromLists(value) {
  const shape = [];
  for (let v = value; Array.isArray(v); v = v[0]) shape.push(v.length);
  return tensor(shape, Float64Array.from([value].flat(Infinity)));
}

/** A tensor as nested lists, or a number. */
export function toLists({shape, data}) {
  const build = (axis, at) => {
    if (axis === shape.length) return data[at];
    const step = count(shape.slice(axis + 1));
    return Array.from({length: shape[axis]}, (_, i) => build(axis + 1, at + i * step));
  };
  return build(0, 0);
}

/** Outputs by name as lists, the tensor of every node, and the sizes. */
export function run(graph, env, given = {}) {
  const inputs = {};
  for (const [name, value] of Object.entries(env)) inputs[name] = fromLists(value);
  const sizes = bind(graph, inputs, given);
  const values = [];
  for (const node of graph.nodes) {
    const shape = node.shape.map((dim) => sizeOf(parse(dim), sizes));
    const args = node.inputs.map((id) => values[id]);
    const call = {args, attrs: node.attrs, shape, sizes, node, inputs};
    values.push(tensor(shape, RULES[node.op](call)));
  }
  const outputs = {};
  for (const [name, id] of Object.entries(graph.outputs)) {
    outputs[name] = toLists(values[id]);
  }
  return {outputs, values, sizes};
}
