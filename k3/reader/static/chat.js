// Talks to /v1/chat/completions of the server that sent this page.

const form = document.getElementById("say");
const turns = document.getElementById("turns");
const state = document.getElementById("state");
const field = (id) => document.getElementById(id);
let messages = [];
let running = null;
// Tool calls of the last answer that wait for the reader's results.
let pending = [];

function part(parent, kind, label) {
  const found = parent.querySelector(`.${kind}`);
  if (found) return found;
  const made = document.createElement("div");
  made.className = kind;
  made.dataset.label = label;
  parent.append(made);
  return made;
}

function turn(who) {
  const made = document.createElement("div");
  made.className = `turn ${who}`;
  made.innerHTML = `<b>${{user: "You", tool: "Tool", assistant: "K3"}[who]}</b>`;
  turns.append(made);
  return made;
}

/** The JSON of each event of a stream. */
async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const {done, value} = await reader.read();
    if (done) return;
    const lines = (rest + value).split(/\r?\n/);
    rest = lines.pop();
    for (const line of lines) {
      if (!line.startsWith("data:")) continue;
      const text = line.slice(5).trim();
      if (text === "[DONE]") return;
      yield JSON.parse(text);
    }
  }
}

/** A piece of a call joins what came of it; all calls as text. */
function call(calls, delta) {
  const found = (calls[delta.index] ??= {id: "", type: "function", function: {name: "", arguments: ""}});
  found.id ||= delta.id ?? "";
  found.function.name += delta.function?.name ?? "";
  found.function.arguments += delta.function?.arguments ?? "";
  return calls.map((each) => `${each.function.name}(${each.function.arguments})`).join("\n");
}

async function answer(item, signal) {
  const headers = {"content-type": "application/json"};
  if (field("key").value) headers.authorization = `Bearer ${field("key").value}`;
  const body = {
    messages,
    stream: true,
    stream_options: {include_usage: true},
    reasoning_effort: field("effort").value,
    max_tokens: Number(field("most").value),
  };
  if (field("with-tools").checked) body.tools = tools();
  const response = await fetch("v1/chat/completions", {
    method: "POST", headers, body: JSON.stringify(body), signal,
  });
  if (!response.ok) throw new Error(await refusal(response));
  return gather(item, response);
}

function tools() {
  try {
    return JSON.parse(field("tools").value);
  } catch (error) {
    throw new Error(`The tools are no JSON: ${error.message}`);
  }
}

async function refusal(response) {
  if (response.status === 404 || response.status === 405) {
    return "No model is served here. Start one with: k3 serve";
  }
  const found = await response.json().catch(() => null);
  return found?.error?.message ?? `the server answered ${response.status}`;
}

async function gather(item, response) {
  const began = performance.now();
  const [calls, found] = [[], {content: "", thinking: "", usage: null, first: 0}];
  for await (const event of events(response)) {
    if (event.error) throw new Error(event.error.message);
    if (event.usage) found.usage = event.usage;
    const delta = event.choices?.[0]?.delta ?? {};
    if (delta.reasoning_content) {
      found.thinking += delta.reasoning_content;
      part(item, "thinking", "thinking").textContent = found.thinking;
    }
    if (delta.content) {
      found.content += delta.content;
      part(item, "content", "answer").textContent = found.content;
    }
    for (const each of delta.tool_calls ?? []) {
      part(item, "calls", "tool call").textContent = call(calls, each);
    }
    found.first ||= performance.now() - began;
  }
  return {...found, calls, seconds: (performance.now() - began) / 1000};
}

function figures({usage, seconds, first}) {
  if (!usage) return "";
  const cached = usage.prompt_tokens_details?.cached_tokens ?? 0;
  const speed = usage.completion_tokens / seconds;
  return `${usage.completion_tokens} tokens, ${speed.toFixed(speed < 10 ? 1 : 0)} tokens/s, ` +
    `the first after ${(first / 1000).toFixed(2)} s; ` +
    `${cached} of ${usage.prompt_tokens} prompt tokens cached`;
}

/** The answer as the history keeps it: with its thinking, so that its prefix is cached. */
function past({content, thinking, calls}) {
  const kept = {role: "assistant", content};
  if (thinking) kept.reasoning_content = thinking;
  if (calls.length) kept.tool_calls = calls;
  return kept;
}

/** What the reader typed: a message, or the result of a call that waits. */
function take(text) {
  const [one] = pending;
  const shown = part(turn(one ? "tool" : "user"), "content", "");
  shown.textContent = one ? `${one.function.name} → ${text}` : text;
  messages.push(one
    ? {role: "tool", tool_call_id: one.id, content: text}
    : {role: "user", content: text});
  pending = pending.slice(1);
  wait();
  return pending.length === 0;
}

function wait() {
  const [one] = pending;
  field("asked").textContent = one ? `Result of ${one.function.name}(${one.function.arguments})` : "Your message";
}

async function say() {
  const item = turn("assistant");
  running = new AbortController();
  field("stop").disabled = false;
  state.textContent = "Answering…";
  try {
    const found = await answer(item, running.signal);
    messages.push(past(found));
    part(item, "figures", "").textContent = figures(found);
    pending = found.calls;
    state.textContent = pending.length ? "The model waits for the result of its call." : "";
  } catch (error) {
    messages.pop();
    state.textContent = error.name === "AbortError" ? "Stopped." : error.message;
    if (item.children.length === 1) item.remove();
  }
  running = null;
  field("stop").disabled = true;
  wait();
  item.scrollIntoView({block: "nearest"});
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const text = field("words").value.trim();
  if (!text || running) return;
  field("words").value = "";
  if (take(text)) say();
});
field("words").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey) {
    event.preventDefault();
    form.requestSubmit();
  }
});
field("stop").addEventListener("click", () => running?.abort());
field("new").addEventListener("click", () => {
  running?.abort();
  messages = [];
  pending = [];
  turns.replaceChildren();
  state.textContent = "";
  wait();
});
