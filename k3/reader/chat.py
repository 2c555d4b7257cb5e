"""The page that talks to the model of the server it came from."""

import html
import json

from k3.reader.page import Page

# Offered to be changed: what the model may call, and the reader answers for it.
EXAMPLE = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "The weather of a city.",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}},
                "required": ["city"],
            },
        },
    }
]


def page() -> Page:
    """A form, and what the answer shows: thinking, calls, speed, cached tokens."""
    tools = html.escape(json.dumps(EXAMPLE, indent=2), quote=False)
    return Page(
        path="chat",
        title="Chat",
        description="Talk to the model that k3 serve runs on this machine.",
        scripts=("chat.js",),
        body=f"""<header class="opening"><h1>Chat</h1>
<p class="summary">With the model of the server that sent this page. Thinking is dimmed,
tool calls are shown as they are made, and each answer tells its speed and how much of
the prompt was cached.</p></header>
<noscript><p>This page needs JavaScript; <code>k3 chat URL</code> does the same in a
terminal.</p></noscript>
<section class="chat" aria-label="Conversation">
<div id="turns" role="log" aria-label="Turns" tabindex="0"></div>
<p id="state" role="status"></p>
<form id="say">
<label for="words" id="asked">Your message</label>
<textarea id="words" rows="3" required></textarea>
<div class="controls">
<button type="submit" class="button">Send</button>
<button type="button" id="stop" disabled>Stop</button>
<button type="button" id="new">New conversation</button>
<label>Effort <select id="effort"><option>low</option><option>high</option>
<option selected>max</option><option value="none">no thinking</option></select></label>
<label>At most <input id="most" type="number" min="1" value="128"> tokens</label>
</div>
<details class="more"><summary>Key and tools</summary>
<label class="key">Key, where the server wants one
<input id="key" type="password" autocomplete="off"></label>
<label><input id="with-tools" type="checkbox"> Offer these tools; you answer for them
</label>
<textarea id="tools" rows="8" spellcheck="false" aria-label="Tools as JSON">{tools}
</textarea></details></form></section>""",
    )
