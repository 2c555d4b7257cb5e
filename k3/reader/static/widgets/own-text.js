// A text of the reader's own for a widget whose table a server makes.

import {h} from "./dom.js";
import {post} from "./model.js";

/** A form; its answer replaces table, names and the reach of the one control. */
export function ownText(widget) {
  const id = `${widget.id}-own`;
  const box = h("input", {id, type: "text", maxlength: 400, required: true, autocomplete: "off"});
  const submit = async (event) => {
    event.preventDefault();
    widget.status.textContent = "The model reads …";
    try {
      take(widget, box.value, await post(widget.data.asks, {text: box.value}));
    } catch (error) {
      widget.status.textContent = `The model did not read it: ${error.message}`;
    }
  };
  return h("form", {class: "k3-own", onsubmit: submit},
    h("label", {for: id}, "A text of your own"), box, h("button", {type: "submit"}, "Trace it"));
}

function take(widget, text, {steps, extra}) {
  const {data} = widget;
  const [control] = data.controls;
  const last = steps.length;
  data.table = Object.fromEntries(steps.map((step, i) => [JSON.stringify([i + 1]), step]));
  Object.assign(data, {extra, given: {text}, says: `It reads “${text}”.`});
  Object.assign(control, {high: last, value: last});
  widget.again = async () =>
    (await post(data.asks, {text})).steps[widget.state[control.name] - 1];
  widget.querySelector("header p").textContent = data.says;
  widget.inputs();
  widget.state = {[control.name]: last};
  widget.update();
  widget.status.textContent = `${last} tokens read.`;
}
