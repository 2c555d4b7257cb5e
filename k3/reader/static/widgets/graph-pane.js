// <k3-graph>: the drawing comes from the build; here nodes tell their values.

import {run, toLists} from "../graph.js";
import {h, matrix, show} from "./dom.js";

const KEYS = {ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right"};

export class K3Graph extends HTMLElement {
  connectedCallback() {
    const script = this.querySelector("script[type='application/json']");
    if (!script || this.data) return;
    this.data = JSON.parse(script.textContent);
    this.nodes = [...this.querySelectorAll(".node")];
    this.place = this.querySelector(".k3-node");
    for (const node of this.nodes) {
      node.addEventListener("click", () => this.choose(node));
      node.addEventListener("focus", () => this.choose(node));
      node.addEventListener("keydown", (event) => this.key(event, node));
    }
    if (this.nodes.length) {
      this.place.replaceChildren(h("p", {}, "Choose a node: its value, its line, its lemma. Arrow keys move along the graph."));
    }
  }

  key(event, node) {
    const way = KEYS[event.key];
    if (!way) return;
    event.preventDefault();
    event.stopPropagation();
    this.next(node, way)?.focus();
  }

  /** The operand above, the first reader below, or the neighbour in the layer. */
  next(node, way) {
    const i = Number(node.dataset.node);
    const {nodes} = this.data.graph;
    const by = (number) => this.nodes[number];
    if (way === "up") return by(nodes[i].inputs[0]);
    if (way === "down") return by(nodes.findIndex((n) => n.inputs.includes(i)));
    const middle = (n) => {
      const rect = n.querySelector("rect");
      return [Number(rect.getAttribute("x")), Number(rect.getAttribute("y"))];
    };
    const [x, y] = middle(node);
    const sign = way === "right" ? 1 : -1;
    return this.nodes
      .filter((n) => middle(n)[1] === y && sign * (middle(n)[0] - x) > 0)
      .sort((a, b) => sign * (middle(a)[0] - middle(b)[0]))[0];
  }

  choose(node) {
    if (node === this.chosen) return;
    this.chosen?.classList.remove("chosen");
    this.nodes.forEach((n) => n.setAttribute("tabindex", n === node ? 0 : -1));
    node.classList.add("chosen");
    this.chosen = node;
    const i = Number(node.dataset.node);
    const {graph, lines, env, sizes} = this.data;
    this.values ??= run(graph, env, sizes).values;
    const lemma = this.data.lemmas?.[graph.nodes[i].label];
    const all = Object.entries(sizes).map(([name, size]) => `${name} = ${size}`).join(", ");
    this.place.replaceChildren(
      h("p", {}, h("b", {}, node.getAttribute("aria-label")), " at ", h("code", {}, lines[i]),
        ...(lemma ? [" · lemma ", h("code", {}, lemma)] : [])),
      this.value(toLists(this.values[i])),
      h("p", {class: "k3-small"}, `Inputs are drawn at random, sizes ${all}.`));
  }

  value(lists) {
    if (!Array.isArray(lists)) return h("p", {class: "k3-single"}, show(lists));
    if (!Array.isArray(lists[0]?.[0])) return matrix(lists, {caption: "value"});
    const parts = lists.slice(0, 6);
    const flat = (part) => (Array.isArray(part[0]?.[0]) ? part.flat() : part);
    return h("div", {class: "k3-row"}, ...parts.map((part, i) => matrix(flat(part), {caption: `value, ${i + 1}`})));
  }
}
