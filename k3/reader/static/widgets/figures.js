// What each widget draws: it reads outputs and asks the graph for more, never computes.

import {bars, boxes, h, matrix} from "./dom.js";
import * as curves from "./curves.js";
import {update} from "./update.js";

const names = (widget, control) => widget.data.controls.find((c) => c.name === control);

function layers({outputs: {is_mla: mla, sources}, state: {block}}) {
  const groups = [];
  mla.forEach((on, i) => {
    const group = Math.floor(i / block);
    (groups[group] ??= []).push(h("li", {
      class: on ? "on" : "", title: `layer ${i + 1}: ${on ? "MLA" : "KDA"}, mixes ${sources[i]} sources`,
    }, on ? "M" : "K"));
  });
  return h("figure", {class: "k3-layers"},
    h("figcaption", {}, "M is an MLA layer, K a KDA layer; each line is one depth block"),
    h("ol", {}, ...groups.map((items, g) => h("li", {},
      h("span", {class: "side"}, `${sources[g * block]} source${sources[g * block] > 1 ? "s" : ""}`),
      h("ol", {}, ...items)))));
}

function walk({outputs: {sources, weights}, state}) {
  const done = Number(state.layers);
  const title = (i) => {
    if (i === 0) return "embedding";
    const first = 2 * (i - 1) + 1;
    return first < done ? `layers ${first} + ${first + 1}` : `layer ${first}, running`;
  };
  const chain = boxes([
    {sign: "e", name: "embedding", kind: "on"},
    ...Array.from({length: 6}, (_, i) => ({
      sign: String(i + 1), name: i < done ? `block ${Math.floor(i / 2) + 1}` : "to come",
      kind: i < done ? "on" : "off",
    })),
  ], {caption: `${done} of 6 layers done, two to a block`});
  const items = sources.map((source, i) => ({
    name: title(i), value: weights[i], note: `(${source.map((x) => x.toFixed(2)).join(", ")})`,
  }));
  return [chain, bars(items, {caption: "Depth weight of each source, and the source", top: 1})];
}

function router({outputs: {adjusted, chosen, share}, state: {scores, bias}, data}) {
  const experts = data.controls[0].columns;
  return bars(experts.map((name, e) => {
    const rank = chosen.indexOf(e);
    return {
      name, value: adjusted[e], mark: rank >= 0,
      note: `${scores[e]} ${bias[e] < 0 ? "−" : "+"} ${Math.abs(bias[e])}: ${
        rank < 0 ? "not chosen" : `choice ${rank + 1}, weight ${share[e].toFixed(4)}`}`,
    };
  }), {caption: "Score + bias decides; the weight is from the score alone"});
}

function overlap({outputs: {target, draft, correction}}) {
  const at = (values) => values.map((value, i) => ({name: `token ${i + 1}`, value}));
  const both = target.flatMap((p, i) => [
    {name: `token ${i + 1}: p`, value: p, note: p <= draft[i] ? "all kept" : "", mark: p <= draft[i]},
    {name: `token ${i + 1}: q`, value: draft[i], note: draft[i] < p ? "all kept" : "", mark: draft[i] < p},
  ]);
  return [
    bars(both, {caption: "Target p and draft q; the smaller of each pair is kept", top: 1}),
    bars(at(correction), {caption: "After a rejection the token comes from this law", top: 1}),
  ];
}

function rollback({outputs: {kept, accepted, keep}, state: {uniforms}}) {
  const items = kept.map((on, i) => ({
    sign: on ? "✓" : i === accepted ? "✗" : "·",
    name: on ? "kept" : i === accepted ? "rejected" : "taken back",
    kind: on ? "on" : i === accepted ? "bad" : "off",
    title: `u ${uniforms[i]} against ${keep[i].toFixed(3)}`,
  }));
  items.push({sign: "+1", name: accepted < kept.length ? "correction" : "bonus", kind: "on"});
  return [boxes(items, {caption: "The drafted block, then the token the target adds"}),
    bars(keep.map((value, i) => ({
      name: `draft ${i + 1}`, value, note: `u = ${uniforms[i]}`, mark: uniforms[i] < value,
    })), {caption: "Kept while u < min(1, p/q)", top: 1})];
}

function prefix({outputs: {restored, rows}, state: {kept, matched}}) {
  return boxes(kept.map((point, i) => {
    const end = 512 * (i + 1);
    const state = end <= rows ? "rows" : matched > end - 512 ? "part" : "no rows";
    return {
      sign: end === restored ? "▶" : point ? "◆" : "◇",
      name: `${end.toLocaleString("en-US")}: ${state}`,
      kind: end <= restored ? "on" : end <= rows ? "half" : "off",
      title: point ? "has a checkpoint" : "no checkpoint",
    };
  }), {caption: "Ends of the 12 blocks: ▶ resumes here, ◆ checkpoint, ◇ none"});
}

function planner({outputs: {plan, home, computed, fetched}, data: {extra}}) {
  return [
    matrix(plan, {caption: "Slots that each rank computes", rowNames: extra.rows, columnNames: extra.columns}),
    matrix(home.map((_, r) => [home[r], computed[r], fetched[r]]), {
      caption: "By rank", rowNames: extra.rows, columnNames: ["at home", "computed", "fetched"],
    }),
  ];
}

function quantizer({outputs: {nibble, value, error}, state: {x}}) {
  const cell = (v) => String(Number(v.toFixed(4))).replace("-", "−");
  return h("figure", {class: "k3-codes"},
    h("figcaption", {}, "value → code (hex) → decoded; ≠ marks an error"),
    h("ol", {}, ...x.map((v, i) => h("li", {class: error[i] ? "off" : "on"},
      h("span", {}, cell(v)), h("b", {}, nibble[i].toString(16)),
      h("span", {}, `${error[i] ? "≠ " : "= "}${cell(value[i])}`)))));
}

function scan({outputs: {M, B, grouped, regrouped, reordered}}) {
  return h("div", {class: "k3-row"},
    matrix(M, {caption: "M of all three"}), matrix(B, {caption: "B of all three"}),
    matrix(grouped, {caption: "(1 2) 3", hot: true}),
    matrix(regrouped, {caption: "1 (2 3): the same", hot: true}),
    matrix(reordered, {caption: "2 1 3: another"}));
}

function heads({outputs: {blocks, per_head: own, whole}, state: {M}, data}) {
  const rowNames = names({data}, "M").rows;
  return h("div", {class: "k3-row"},
    matrix(M, {caption: "momentum", rowNames}),
    ...blocks.map((block, i) => matrix(block, {caption: `head ${i + 1}`})),
    matrix(own, {caption: "orthogonal by head", hot: true}),
    matrix(whole, {caption: "orthogonal at once"}));
}

function masked({outputs: {losses, gradient}, state: {mask, targets}}) {
  const positions = ["user", "think", "reply", "end"];
  return [
    bars(losses.map((value, t) => ({
      name: positions[t], value, mark: mask[t] === 1,
      note: `${mask[t] ? "counts" : "left out"}, target token ${targets[t]}`,
    })), {caption: "Loss of each position"}),
    matrix(gradient, {caption: "Gradient of the mean by logit", rowNames: positions,
      columnNames: ["token 0", "token 1", "token 2"]}),
  ];
}

function stages({outputs: {patches, merged, width}, state: {medium, t, h2, w2}}) {
  const frames = medium === "video" ? t + 2 : 1;
  return boxes([
    {sign: `${frames} × ${2 * h2} × ${2 * w2}`, name: "frames, rows, columns", kind: "on"},
    {sign: String(patches), name: "patches, each sees all", kind: "on"},
    {sign: frames > 1 ? "mean" : "as is", name: "over frames", kind: "half"},
    {sign: "2 × 2", name: `side by side: ${width} wide`, kind: "half"},
    {sign: String(merged), name: "rows for the text", kind: "on"},
  ], {caption: `One ${medium} through the tower`});
}

function trace({outputs: {memory, cached, depth, experts}, data: {extra}, state}) {
  const most = Math.max(...memory);
  return [
    boxes(extra.tokens.map((text, i) => ({
      sign: text.trim() || "␣", name: i < state.token ? "read" : "to come", kind: i < state.token ? "on" : "off",
    })), {caption: `${state.token} of ${extra.tokens.length} tokens read`}),
    h("div", {class: "k3-row k3-panels"},
      bars(memory.map((value, i) => (cached[i]
        ? {name: extra.layers[i], value: (cached[i] / extra.tokens.length) * most, text: `${cached[i]} rows`, mark: true}
        : {name: extra.layers[i], value})),
      {caption: "State: size of a KDA memory, which never grows in bytes; rows of an MLA cache", top: most}),
      matrix(depth, {caption: "Depth weights of each layer's first mix", say: (x) => (x ? x.toFixed(2) : ""),
        rowNames: extra.layers, columnNames: extra.sources.map((name, i) => (i ? `${i + 1}` : "embedding"))}),
      matrix(experts, {caption: "Experts chosen, by sparse layer", say: (x) => (x ? "✓" : ""),
        rowNames: extra.sparse, columnNames: experts[0].map((_, e) => `${e + 1}`)})),
  ];
}

export const FIGURES = {
  "layer-schedule": layers,
  "kda-update": update,
  "attn-res-walk": walk,
  "moonvit": stages,
  "muon-heads": heads,
  "loss-mask": masked,
  "mx-quantizer": quantizer,
  "affine-scan": scan,
  "prefix-cache": prefix,
  moonep: planner,
  router,
  overlap,
  rollback,
  trace,
  ...curves,
};
