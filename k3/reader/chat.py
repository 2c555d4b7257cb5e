"""The page that talks to the model of the server it came from."""

from k3.reader.page import Page


def page() -> Page:
    """A form, and what the answer shows: thinking, calls, speed, cached tokens."""
    return Page(
        path="chat",
        title="Chat",
        scripts=("chat.js",),
        body="""<header class="opening"><h1>Chat</h1>
<p class="summary">With the model of the server that sent this page: start one with
<code>k3 serve</code> and open it at <code>/chat.html</code>.</p></header>
<noscript><p>This page needs JavaScript; <code>k3 chat URL</code> does the same in a
terminal.</p></noscript>
<section class="chat" aria-label="Conversation">
<div id="turns" role="log" aria-label="Turns" tabindex="0"></div>
<form id="say">
<label for="words">Your message</label>
<textarea id="words" rows="3" required></textarea>
<div class="controls">
<label>Effort <select id="effort"><option>low</option><option>high</option>
<option>max</option></select></label>
<label>At most <input id="most" type="number" min="1" value="128"> tokens</label>
<label class="key">Key <input id="key" type="password" autocomplete="off"></label>
<button type="submit" class="button">Send</button>
<button type="button" id="stop" disabled>Stop</button>
<button type="button" id="new">New conversation</button>
</div></form>
<p id="state" role="status"></p></section>""",
    )
