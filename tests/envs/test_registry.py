"""Environments by name."""

import pytest

from k3.data.tasks import lot
from k3.data.xtml import Message
from k3.envs import environment, harness, registry
from k3.envs.environment import Environment
from k3.envs.harness import Task
from k3.errors import ConfigError, RequestError

EMPTY = Message(None, "", (), "stop")


def test_an_unknown_name_is_a_sentence():
    with pytest.raises(RequestError, match=r"an environment is one of .*got 'chess'"):
        registry.named("chess")


def test_no_name_is_given_twice():
    assert len(set(registry.names())) == len(registry.names())


def test_a_task_is_made_under_the_harness_that_is_named():
    plain = registry.named("table")("train", 3)
    react = registry.named("table@react")("train", 3)
    assert plain.task.goal == react.task.goal
    assert plain.harness.name == registry.HARNESS
    assert react.harness.name == "react"
    with pytest.raises(ConfigError, match=r"a harness is one of .*got 'vim'"):
        registry.named("table@vim")
    with pytest.raises(RequestError, match="got 'chess@react'"):
        registry.named("chess@react")


@pytest.mark.parametrize("name", sorted(registry.TASKS))
def test_an_instance_depends_on_split_and_index_alone(name):
    make = registry.named(name)
    made = [make(s, i) for s in lot.SPLITS for i in range(3)]
    again = [make(s, i) for s in lot.SPLITS for i in range(3)]
    goals = [str(m.task.goal) for m in made]
    assert goals == [str(m.task.goal) for m in again]
    assert len(set(goals)) == len(goals)
    for played in (*made, *again):
        assert isinstance(played, Environment)
        assert isinstance(played.task, Task)
        played.close()
        played.close()


@pytest.mark.parametrize("name", sorted(registry.TASKS))
def test_the_perfect_agent_gets_1_and_the_empty_one_0(name):
    make = registry.named(name)
    for split in lot.SPLITS:
        for index in range(2):
            played = make(split, index)
            assert environment.play(played, harness.solver(played)) == 1.0
            played = make(split, index)
            assert environment.play(played, lambda messages: EMPTY) == 0.0


@pytest.mark.parametrize("name", sorted((*registry.BOXED, *registry.BOXED_TASKS)))
def test_what_needs_sandboxes_takes_those_it_is_given(name, boxes):
    played = registry.named(name, boxes)("heldout", 1)
    assert isinstance(played, Environment)
    assert environment.play(played, lambda messages: EMPTY) == 0.0


def test_without_a_backend_sandboxes_are_of_this_machine(boxes):
    played = registry.named("code@bash")("train", 0)
    assert played.task.workshop.run("echo here") == "here"
    played.close()
