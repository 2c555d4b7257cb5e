// The figure of one KDA update: four steps, one of them lit.

import {h, matrix} from "./dom.js";

const STEPS = [
  ["decay", "Each row of the memory shrinks by its own α."],
  ["recall", "The key reads what the decayed memory says."],
  ["write", "The difference to the value is written along the key, with strength β."],
  ["read", "The query reads the new memory."],
];

export function update(widget) {
  const {outputs: o, state: {S}, local} = widget;
  const step = local.step ?? 3;
  const go = (next) => {
    local.step = Math.min(3, Math.max(0, next));
    widget.update();
  };
  const part = (value, caption, from) =>
    h("div", {class: step >= from ? "" : "later", "aria-hidden": step < from ? "true" : undefined},
      matrix(value, {caption, hot: step === from}));
  const button = (text, next, off) =>
    h("button", {type: "button", "aria-label": text, disabled: off, onclick: () => go(next)}, text);
  return [
    h("div", {class: "k3-steps"},
      button("Previous step", step - 1, step === 0),
      button("Next step", step + 1, step === 3),
      h("span", {}, h("b", {}, `${step + 1} of 4, ${STEPS[step][0]}. `), STEPS[step][1])),
    h("div", {class: "k3-row"},
      matrix(S, {caption: "memory S"}),
      part(o.decayed, "decayed", 0),
      part([o.recalled], "recalled", 1),
      part(o.written, "written", 2),
      part(o.S_next, "new memory S′", 2),
      part([o.o], "read", 3)),
  ];
}
