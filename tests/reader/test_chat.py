"""The chat page on a running server: thinking, calls, results, speed, cached tokens."""

import json
import os
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest
import uvicorn

import k3
from k3.model.completion import Token
from k3.reader import calculator, serve
from k3.serve.openai import ServerOptions, app, server
from k3.serve.request import Output

OPEN = "<|open|>{}<|sep|>"
CLOSE = "<|close|>{}<|sep|>"
DONE = CLOSE.format("message") + "<|end_of_msg|>"
CALL = (
    '<|open|>call tool="weather" index="1"<|sep|>'
    '<|open|>argument key="city" type="string"<|sep|>Oslo<|close|>argument<|sep|>'
    + CLOSE.format("call")
)


def said(thought, answer, calls=""):
    """An answer as K3 writes it, from inside its thinking."""
    tools = OPEN.format("tools") + calls + CLOSE.format("tools") if calls else ""
    response = OPEN.format("response") + answer + CLOSE.format("response")
    return thought + CLOSE.format("think") + response + tools + DONE


class Worker:
    """Says what it was told to, one answer after the other."""

    alive = True

    def __init__(self, tokenizer, answers):
        self.tokenizer, self.answers, self.requests = tokenizer, list(answers), []

    async def stream(self, request):
        self.requests.append(request)
        text = self.answers.pop(0)
        ids, decoder = self.tokenizer.encode(text, allow_special=True), None
        decoder = self.tokenizer.stream()
        for place, each in enumerate(ids):
            last = place + 1 == len(ids)
            written = "" if last else decoder.push(each)
            token = Token(
                id=each, logprob=-0.5, text=written, alternatives=(), finish=""
            )
            yield Output(
                request_id=request.id,
                index=0,
                tokens=(token,),
                finish="stop" if last else "",
                cached_tokens=len(request.tokens) // 2,
                prompt_logprobs=None,
                error=None,
            )


@contextmanager
def served(answers):
    """The application with the reader beside a scripted model: address and worker."""
    tokenizer = k3.tokenizer("tiny")
    worker = Worker(tokenizer, answers)
    options = ServerOptions(config=calculator.tiny(), names=("tiny",))
    made = app(worker, tokenizer, options, reader=serve.pages())
    listening = server.listen("127.0.0.1", 0)
    running = uvicorn.Server(uvicorn.Config(made, log_level="error", lifespan="off"))
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", worker
    finally:
        running.should_exit = True
        thread.join()


def send(page, text):
    page.fill("#words", text)
    page.press("#words", "Enter")


def test_thinking_calls_results_speed_and_cached_tokens(visit):
    answers = [said("Which city?", "I ask.", CALL), said("Rain.", "Take a coat.")]
    with served(answers) as (address, worker):
        seen = visit(address=address)
        page = seen.open("chat.html")
        page.get_by_text("Key and tools").click()
        page.check("#with-tools")
        send(page, "Oslo?")
        page.wait_for_selector("#turns .figures")
        thought, answer = (
            page.locator("#turns .thinking"),
            page.locator("#turns .content"),
        )
        assert thought.inner_text() == "Which city?"
        assert answer.last.inner_text() == "I ask."
        colours = [
            each.evaluate("e => getComputedStyle(e).color")
            for each in (thought, answer.last)
        ]
        assert colours[0] != colours[1]
        calls = page.locator("#turns .calls")
        assert calls.inner_text() == 'weather({"city":"Oslo"})'.replace('":"', '": "')
        figures = page.locator("#turns .figures").inner_text()
        prompt = len(worker.requests[0].tokens)
        assert f"{prompt // 2} of {prompt} prompt tokens cached" in figures
        assert "tokens/s" in figures
        assert "Result of weather" in page.inner_text("#asked")
        assert seen.violations() == []
        send(page, "rain")
        page.wait_for_function(
            "document.querySelectorAll('#turns .figures').length === 2"
        )
        assert "weather → rain" in page.inner_text("#turns")
        assert page.inner_text("#turns").rstrip().count("Take a coat.") == 1
        assert page.inner_text("#asked") == "Your message"
        # The past goes back whole: what was thought, and the call with its result.
        second = worker.tokenizer.decode(worker.requests[1].tokens)
        assert all(word in second for word in ("Which city?", "Oslo", "rain"))


def test_stop_new_conversation_and_a_refusal(visit):
    with served([said("Hm.", "One."), said("Hm.", "Two.")]) as (address, worker):
        seen = visit(address=address)
        page = seen.open("chat.html")
        page.fill("#most", "0")
        send(page, "x")
        page.evaluate("document.getElementById('say').noValidate = true")
        page.get_by_role("button", name="Send").click()
        page.wait_for_function("document.getElementById('state').textContent !== ''")
        # The browser reports a refusal on its own.
        seen.problems.clear()
        page.fill("#most", "64")
        send(page, "again")
        page.wait_for_selector("#turns .figures")
        page.get_by_role("button", name="New conversation").click()
        assert page.inner_text("#turns") == ""
        send(page, "anew")
        page.wait_for_selector("#turns .figures")
        assert "again" not in worker.tokenizer.decode(worker.requests[-1].tokens)


def test_without_a_model_the_page_says_what_to_start(visit):
    found = visit()
    page = found.open("chat.html")
    send(page, "hello")
    page.get_by_text("No model is served here. Start one with: k3 serve").wait_for()
    # A browser reports the missing address on its own.
    found.problems.clear()


@pytest.mark.slow
def test_the_shipped_model_through_k3_serve(visit):
    command = [sys.executable, "-m", "k3", "serve", "tiny", "--port", "0", "--json"]
    command += ["--block-size", "64", "--prefix-match-unit", "16"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    pipes = {"stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment, **pipes) as process:
        try:
            address = json.loads(process.stdout.readline())["url"]
            page = visit(address=address).open("chat.html")
            page.fill("#most", "24")
            for count in (1, 2):
                send(page, "Return a new list of the items of a dictionary, please.")
                page.wait_for_function(
                    f"document.querySelectorAll('#turns .figures').length === {count}"
                )
            figures = page.locator("#turns .figures").all_inner_texts()
            written = int(figures[0].split(" tokens, ")[0])
            assert 1 <= written <= 24
            assert ": 0 of" not in figures[1].replace("; ", ": ")
        finally:
            process.terminate()
