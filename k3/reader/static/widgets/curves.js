// Figures that are curves: the graph is run at many inputs, one of which can be dragged.

import {chart, range, sample} from "./chart.js";
import {evaluate} from "./model.js";

/** An output of the widget's graph when one control has another value. */
const along = ({data, state}, name, output, patch = {}) => (value) =>
  evaluate(data, {...state, ...patch, [name]: value})[output];

const spec = ({data}, name) => data.controls.find((c) => c.name === name);

/** The point of a control on a curve. */
function point(widget, name, output) {
  const {low, high, step} = spec(widget, name);
  const round = (x) => Number((Math.round(x / step) * step).toPrecision(12));
  return {
    x: widget.state[name], y: widget.outputs[output], step,
    name: `${spec(widget, name).label}, on the curve`,
    move: (x) => widget.set({[name]: Math.min(high, Math.max(low, round(x)))}),
  };
}

export function situ(widget) {
  const {state: {up, beta, linear}, outputs} = widget;
  const x = [-12, 12];
  const [a, b] = ["situ", "swiglu"].map((output) => sample(x, along(widget, "gate", output)));
  const bound = beta * linear;
  const near = range([...a.map((p) => p[1]), outputs.situ, 0], 2);
  const y = [Math.max(near[0] * 1.6, -bound * 1.08), Math.min(near[1] * 1.6, bound * 1.08)];
  return chart({
    x, y, xName: "gate", yName: "value",
    lines: [{points: b, name: "SwiGLU", kind: "other"}, {points: a, name: "SiTU"}],
    points: [point(widget, "gate", "situ")],
    label: `SiTU and SwiGLU over the gate, up = ${up}`,
  });
}

export function retention(widget) {
  const options = spec(widget, "gate").options;
  const x = [-8, 8];
  const lines = options.map((gate) => ({
    points: sample(x, along(widget, "z", "alpha", {gate})),
    name: gate, kind: gate === widget.state.gate ? "" : "other",
    place: gate.startsWith("K3") ? 0.3 : 0.52,
  }));
  return chart({
    x, y: [-0.05, 1.08], xName: "gate input z", yName: "retention α", lines,
    marks: [{y: Math.exp(-5), name: "e⁻⁵"}],
    points: [point(widget, "z", "alpha")],
    label: "Retention of a channel over the gate input, for both gates",
  });
}

const quantile = (widget) => {
  const {state: {margins}, outputs: {threshold, lowest}} = widget;
  const x = [-1.05, 1.05];
  const points = sample(x, along(widget, "theta", "objective"), 169);
  return chart({
    x, y: range(points.map((p) => p[1])), xName: "threshold θ", yName: "objective",
    lines: [{points, name: ""}],
    marks: [...new Set(margins)].map((m) => ({x: m})),
    points: [{x: threshold, y: lowest, name: "what the release takes"}, point(widget, "theta", "objective")],
    label: "Objective over the threshold; a line at each margin",
  });
};

const reward = (widget) => {
  const {state: {limit}} = widget;
  const x = [0, 1];
  const at = (name) => sample([0.001, 1], along(widget, "student", name), 301);
  const y = [-limit - 1, Math.max(limit + 1, 3)];
  return chart({
    x, y, xName: "student's probability", yName: "reward",
    lines: [{points: at("unclipped"), name: "", kind: "other"}, {points: at("reward"), name: ""}],
    marks: [{y: 0}, {x: widget.state.teacher, name: "teacher"}],
    points: [point(widget, "student", "reward")],
    label: "Reward over the student's probability",
  });
};

const growth = (widget) => {
  const GIB = 2 ** 30;
  const {high} = spec(widget, "tokens");
  const at = (name) => sample([0, high], (tokens) => along(widget, "tokens", name)(tokens) / GIB, 41)
    .map(([tokens, bytes]) => [tokens / 1024, bytes]);
  const total = at("total_bytes");
  const step = spec(widget, "tokens").step;
  return chart({
    x: [0, high / 1024], y: [0, total[total.length - 1][1] * 1.15],
    xName: "context, thousands (1,024) of tokens", yName: "GiB",
    lines: [
      {points: at("full_bytes"), name: "all heads", kind: "other"},
      {points: at("fixed_bytes"), name: "KDA", kind: "third"},
      {points: total, name: "whole sequence"},
    ],
    points: [{
      x: widget.state.tokens / 1024, y: widget.outputs.total_bytes / GIB, step: step / 1024, name: "context, on the curve",
      move: (x) => widget.set({tokens: Math.min(high, Math.max(0, Math.round(x) * 1024))}),
    }],
    label: "Bytes of one sequence over its context",
  });
};

export {quantile as "quantile-balancing", reward as "mopd-reward", growth as "mla-cache"};
