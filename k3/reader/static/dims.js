// Dimensions of a typed graph, such as "H*(n+r)": their sizes, and what fixes them.

export const count = (shape) => shape.reduce((a, b) => a * b, 1);

const parsed = new Map();

/** The tree of a dimension's text: a number, a name, or [op, parts]. */
export function parse(text) {
  if (!parsed.has(text)) {
    const tokens = text.match(/\w+|[-+*()]/g);
    parsed.set(text, sum(tokens));
  }
  return parsed.get(text);
}

function chain(tokens, op, next) {
  const parts = [next(tokens)];
  while (tokens[0] === op) {
    tokens.shift();
    parts.push(next(tokens));
  }
  return parts.length === 1 ? parts[0] : [op, parts];
}

const sum = (tokens) => chain(tokens, "+", product);
const product = (tokens) => chain(tokens, "*", atom);

function atom(tokens) {
  const token = tokens.shift();
  if (token === "(") {
    const inside = sum(tokens);
    tokens.shift();
    return inside;
  }
  return /^\d+$/.test(token) ? Number(token) : token;
}

/** The size of a dimension when its names have sizes. */
export function sizeOf(dim, sizes) {
  if (typeof dim === "number") return dim;
  if (typeof dim === "string") {
    if (!(dim in sizes)) throw new Error(`dimension ${dim} has no size`);
    return sizes[dim];
  }
  const parts = dim[1].map((part) => sizeOf(part, sizes));
  return parts.reduce((a, b) => (dim[0] === "+" ? a + b : a * b));
}

const names = (dim) =>
  typeof dim === "string" ? [dim] : Array.isArray(dim) ? dim[1].flatMap(names) : [];

/** Sizes of all dimensions from the inputs' shapes; an error says what does not fit. */
export function bind(graph, inputs, given) {
  const sizes = {...given};
  const nodes = graph.nodes.filter((node) => node.op === "input");
  const pairs = nodes.flatMap(({attrs: {name}, shape}) => {
    if (!(name in inputs)) throw new Error(`${graph.name} needs the input ${name}`);
    return shape.map((dim, axis) => [parse(dim), inputs[name].shape[axis]]);
  });
  for (const [dim, size] of pairs) {
    if (typeof dim === "string") sizes[dim] ??= size;
  }
  while (pairs.some(([dim, size]) => solve(dim, size, sizes)));
  nodes.forEach((node) => check(node, inputs, sizes));
  return sizes;
}

/** Fixes the one unknown name of a dimension; false if there is not exactly one. */
function solve(dim, size, sizes) {
  const unknown = [...new Set(names(dim))].filter((name) => !(name in sizes));
  if (unknown.length !== 1) return false;
  for (let trial = 0; trial <= size; trial += 1) {
    if (sizeOf(dim, {...sizes, [unknown[0]]: trial}) === size) {
      sizes[unknown[0]] = trial;
      return true;
    }
  }
  return false;
}

function check({attrs: {name}, shape}, inputs, sizes) {
  const wanted = shape.map((dim) => sizeOf(parse(dim), sizes));
  const came = inputs[name].shape;
  if (String(wanted) !== String(came)) {
    throw new Error(`input ${name} must be [${shape}] = [${wanted}], not [${came}]`);
  }
}
