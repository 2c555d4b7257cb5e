// Evaluates the exported formulas of k3.config.sizes on whole numbers of any size.

const UNITS = ["B", "kB", "MB", "GB", "TB", "PB"];
const OPERATIONS = {
  "+": (a, b) => a + b,
  "-": (a, b) => a - b,
  "*": (a, b) => a * b,
  "/": (a, b) => (b === 0n ? 0n : (a - (((a % b) + b) % b)) / b),
};

/** The value of a tree: a number, a name, or [operation, tree, tree]. */
export function evaluate(tree, values) {
  if (typeof tree === "number") return BigInt(tree);
  if (typeof tree === "string") return BigInt(values[tree]);
  return OPERATIONS[tree[0]](evaluate(tree[1], values), evaluate(tree[2], values));
}

export function shown(key, value) {
  const whole = value.toLocaleString("en");
  if (!key.endsWith("_bytes")) return whole;
  let [size, unit] = [Number(value), 0];
  while (size >= 1000 && unit < UNITS.length - 1) [size, unit] = [size / 1000, unit + 1];
  const short = size.toLocaleString("en", {
    minimumFractionDigits: 2, maximumFractionDigits: 2,
  });
  return unit ? `${short} ${UNITS[unit]} = ${whole} B` : `${whole} B`;
}

async function start(form) {
  const data = await (await fetch("static/data/sizes.json")).json();
  const inputs = [...form.querySelectorAll("input")];
  const outputs = [...document.querySelectorAll("[data-result]")];

  const update = () => {
    const values = Object.fromEntries(
      inputs.map((each) => [each.name, Math.max(0, Math.floor(Number(each.value) || 0))]),
    );
    const formulas = data.models[form.model.value].formulas;
    for (const each of outputs) {
      const key = each.dataset.result;
      each.textContent = shown(key, evaluate(formulas[key], values));
    }
  };
  const fill = (name) => {
    for (const [field, value] of Object.entries(data.models[name].free)) {
      form.elements[field].value = value;
    }
    update();
  };
  form.addEventListener("input", (event) => {
    if (event.target === form.model) fill(form.model.value);
    else update();
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(() => fill(form.model.value)));
  form.dataset.ready = "";
}

const form = globalThis.document?.getElementById("sizes");
if (form) start(form);
