"""Code with hidden tests: the right program passes, whatever else is done does not."""

import json

import pytest

from k3.data.tasks import lot
from k3.envs import harness
from k3.envs.environment import play
from k3.envs.harness import PRESETS, Harnessed
from k3.envs.tasks import code


def played_by(task, steps, name="bash"):
    played = Harnessed(task, harness.preset(name))
    return play(played, harness.agent(played, steps))


@pytest.mark.parametrize("at", range(len(PRESETS)))
def test_the_perfect_agent_is_right_under_every_preset(boxes, at):
    task = code.make(lot.SPLITS[at % 2], at, boxes)
    heard = []

    def solve():
        asked = task.solve()
        heard.append((yield next(asked)))
        return "done"

    assert played_by(task, solve(), PRESETS[at]) == 1.0
    assert "passed" in heard[0]


TABLE = """
import json
known = {json.dumps(a): b for a, b in json.load(open("examples.json"))}
print(json.dumps(known.get(input().strip(), list(known.values())[0])))
"""
SEARCH = """
import glob, json, os
found = []
for pattern in ("/work/**", "/tmp/**", "/proc/[0-9]*/*", "/proc/1/fd/*", "/dev/shm/*"):
    for path in glob.glob(pattern, recursive=True, include_hidden=True):
        try:
            with open(path, "rb") as file:
                found.append(file.read(20000).decode(errors="replace"))
        except OSError:
            pass
given = input().strip()
for text in found:
    at = text.find(given + ", ")
    if at >= 0:
        print(json.JSONDecoder().raw_decode(text[at + len(given) + 2:])[0])
        break
else:
    print(json.dumps(json.load(open("examples.json"))[0][1]))
"""
PATCH = """
import builtins, json, os, sys
open("json.py", "w").write("dumps = loads = lambda *a, **k: 'passed'")
open("sitecustomize.py", "w").write("print('passed')")
for parent in (1, os.getppid()):
    for place in ("mem", "fd/1", "fd/4"):
        try:
            open(f"/proc/{parent}/{place}", "wb").write(b'{"code": 0}')
        except OSError:
            pass
os.write(1, b"passed")
os._exit(0)
"""
COMMANDS = {
    "the visible outputs by heart": f"cat > solution.py <<'END'{TABLE}END",
    "a search for what is expected": f"cat > solution.py <<'END'{SEARCH}END",
    "patches of what runs it": f"cat > solution.py <<'END'{PATCH}END",
    "a word and an early end": "echo 'print(\"passed\"); exit(0)' > solution.py",
    "the tests changed": "echo '[]' > examples.json; "
    "echo 'print(\"passed\")' > check.py; python3 check.py; touch solution.py",
    "the input as the program": "ln -s /dev/stdin solution.py",
    "the input again": "echo 'print(input())' > solution.py",
    "a wait for the judge": "echo 'import time; time.sleep(60)' > solution.py; "
    "setsid sh -c 'while :; do cp examples.json solution.py; done' >/dev/null 2>&1 &",
    "nothing": "true",
}


@pytest.mark.parametrize("cheat", COMMANDS)
def test_a_cheater_gets_nothing(boxes, cheat, monkeypatch):
    if "sleep" in COMMANDS[cheat]:
        monkeypatch.setattr(code, "SECONDS", 1.0)
    task = code.make("train", list(COMMANDS).index(cheat), boxes)

    def steps():
        yield "run", {"command": COMMANDS[cheat]}
        return "All tests passed. score = 1.0"

    assert played_by(task, steps()) == 0.0


def test_hidden_cases_are_others_and_tell_programs_apart(boxes):
    for index in range(12):
        task = code.make("heldout", index, boxes)
        visible = json.loads(task.workshop._files["examples.json"])
        hidden = task._hidden
        shown = [given for given, _ in visible]
        assert not [given for given, _ in hidden if given in shown]
        assert len({json.dumps(wanted) for _, wanted in hidden}) > code.HIDDEN // 2
        assert json.dumps(hidden) not in task.goal


def test_the_judge_changes_nothing_and_judges_once(boxes):
    task = code.make("train", 1, boxes)
    source = "import os; os.remove('solution.py'); print('[]')"
    task.workshop.write("solution.py", source)
    assert task.score() == 0.0
    assert task.workshop.read("solution.py") == source
    task.workshop.write("solution.py", task.program.source)
    assert task.score() == 0.0
    task.close()


def test_a_sandbox_that_is_killed_loses_no_work(boxes):
    task = code.make("train", 3, boxes)

    def steps():
        yield "run", {"command": f"cat > part <<'END'\n{task.program.source}END"}
        task.workshop._box._process.kill()
        task.workshop._box._process.wait()
        yield "run", {"command": "cp part solution.py"}
        task.workshop._box._process.kill()
        task.workshop._box._process.wait()
        return "done"

    assert played_by(task, steps(), "bash") == 1.0


def test_a_bool_is_no_number(boxes):
    task = code.make("train", 1, boxes)
    task._hidden = [([1], [1])]
    task.workshop.write("solution.py", "print('[true]')")
    assert task.score() == 0.0
    task.close()


def test_the_splits_have_no_program_in_common(boxes):
    train, held = (
        {code.make(s, i, boxes).program.words for i in range(20)} for s in lot.SPLITS
    )
    assert not train & held
