// <k3-widget>: data inline, controls, a figure, numbers, and what one does with them.

import {fit} from "./chart.js";
import {control} from "./controls.js";
import {h, matrix, show} from "./dom.js";
import {FIGURES} from "./figures.js";
import {address, difference, evaluate, fromAddress, post, python, start} from "./model.js";
import {ownText} from "./own-text.js";

export class K3Widget extends HTMLElement {
  connectedCallback() {
    const script = this.querySelector("script[type='application/json']");
    if (!script || this.data) return;
    this.data = JSON.parse(script.textContent);
    this.state = fromAddress(this.data, location.hash) ?? start(this.data);
    this.local = {};
    this.build();
    this.update();
    this.follow = () => this.arrive();
    window.addEventListener("hashchange", this.follow);
    this.sizes = new ResizeObserver(() => this.figure.clientWidth !== this.width && this.draw());
    this.sizes.observe(this.figure);
    if (fromAddress(this.data, location.hash)) this.scrollIntoView();
  }

  disconnectedCallback() {
    window.removeEventListener("hashchange", this.follow);
    this.sizes?.disconnect();
  }

  arrive() {
    const state = fromAddress(this.data, location.hash);
    if (!state) return;
    this.state = state;
    this.update();
    this.scrollIntoView();
  }

  /** What a reader sets, anew where the inputs are others. */
  inputs() {
    const make = (spec) => control(spec, `${this.id}-${spec.name}`, (value) => this.set({[spec.name]: value}));
    this.controls = Object.fromEntries(this.data.controls.map((spec) => [spec.name, make(spec)]));
    this.form.replaceChildren(...Object.values(this.controls).map((c) => c.node));
  }

  build() {
    const {data} = this;
    const id = `${this.id}-title`;
    const served = document.documentElement.dataset.served !== undefined;
    // It may scroll on a narrow screen, so that keys must reach it.
    const reach = (what) => ({tabindex: 0, role: "group", "aria-label": `${what} of ${data.title}`});
    this.figure = h("div", {class: "k3-figure", ...reach("Figure")});
    this.numbers = h("dl", {class: "k3-numbers"});
    this.spoken = h("output", {class: "k3-unseen", "aria-live": "polite"});
    this.table = h("div", {class: "k3-tables", ...reach("Tables")});
    this.status = h("p", {class: "k3-status", role: "status"});
    const details = h("details", {}, h("summary", {}, "All numbers as tables"), this.table);
    this.form = h("form", {class: "k3-controls", "aria-label": `Inputs of ${data.title}`, onsubmit: (e) => e.preventDefault()});
    this.inputs();
    this.querySelector(".k3-start")?.remove();
    this.append(h("section", {class: "k3-card", "aria-labelledby": id},
      h("header", {}, h("h4", {id}, data.title), h("p", {}, data.says)),
      served && data.asks ? ownText(this) : [],
      h("div", {class: "k3-body"},
        h("div", {class: "k3-shown"}, this.figure, this.numbers, this.spoken), this.form),
      details, this.actions(served), this.status));
  }

  actions(served) {
    const button = (text, onclick) => h("button", {type: "button", onclick}, text);
    return h("div", {class: "k3-actions"},
      button("Reset", () => this.reset()),
      button("Copy link", () => this.link()),
      button("Copy as Python", () => this.copy(python(this.data, this.state), "Python copied: it prints these numbers.")),
      served ? button("Run in Python", () => this.ask()) : []);
  }

  set(patch) {
    this.state = {...this.state, ...patch};
    this.update();
  }

  reset() {
    this.state = start(this.data);
    this.local = {};
    if (location.hash.startsWith(`#widget-${this.data.name}`)) {
      history.replaceState(null, "", `#widget-${this.data.name}`);
    }
    this.update();
    this.status.textContent = "Back at the start.";
  }

  link() {
    history.replaceState(null, "", address(this.data, this.state));
    this.copy(location.href, "Link copied: it opens this state.");
  }

  async copy(text, said) {
    try {
      await navigator.clipboard.writeText(text);
      this.status.textContent = said;
      this.querySelector(".k3-copied")?.remove();
    } catch {
      this.status.textContent = "The browser refuses the clipboard; here it is:";
      this.querySelector(".k3-copied")?.remove();
      this.status.after(h("pre", {class: "k3-copied", tabindex: 0}, text));
    }
  }

  async ask() {
    this.status.textContent = "Asking Python …";
    try {
      const found = await (this.again?.() ?? post("api/eval", {widget: this.data.name, state: this.state}));
      const far = difference(this.outputs, found);
      this.status.textContent = `Python: ${summary(this.data, found)}. Largest difference ${far.toExponential(1)}.`;
    } catch (error) {
      this.status.textContent = `Python did not answer: ${error.message}`;
    }
  }

  update() {
    const {data, state} = this;
    this.outputs = evaluate(data, state);
    for (const [name, {sync}] of Object.entries(this.controls)) sync(state[name]);
    this.status.textContent = "";
    this.draw();
    this.list();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => (this.spoken.textContent = summary(data, this.outputs)), 500);
  }

  /** The figure at the width of its place; a handle in use keeps the focus. */
  draw() {
    this.width = this.figure.clientWidth;
    fit(this.width - 6);
    const name = document.activeElement?.closest?.(".k3-figure") === this.figure
      ? document.activeElement.getAttribute("aria-label") : null;
    this.figure.replaceChildren(...[FIGURES[this.data.name]?.(this) ?? []].flat());
    if (name) this.figure.querySelector(`[aria-label="${CSS.escape(name)}"]`)?.focus();
  }

  list() {
    const {data, outputs} = this;
    const title = (name) => data.names[name] ?? name;
    const single = Object.entries(outputs).filter(([, value]) => !Array.isArray(value));
    this.numbers.replaceChildren(...single.map(([name, value]) =>
      h("div", {}, h("dt", {}, title(name)), h("dd", {}, show(value)))));
    this.table.replaceChildren(...Object.entries(outputs).map(([name, value]) =>
      (Array.isArray(value?.[0]?.[0])
        ? value.map((part, i) => matrix(part, {caption: `${title(name)}, ${i + 1}`}))
        : matrix(Array.isArray(value) ? value : [value], {caption: title(name)}))).flat());
  }
}

/** The single numbers in words. */
const summary = (data, outputs) => Object.entries(outputs)
  .filter(([, value]) => !Array.isArray(value))
  .map(([name, value]) => `${data.names[name] ?? name} ${show(value)}`).join("; ")
  || `${data.title}: ${Object.keys(outputs).length} results`;
