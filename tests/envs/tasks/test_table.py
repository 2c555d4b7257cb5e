"""Table work: answers by hand and by query agree, and the table stays as it is."""

import pytest

from k3.data.tasks import lot
from k3.envs import harness
from k3.envs.environment import play
from k3.envs.harness import PRESETS, Harnessed
from k3.envs.tasks import table

ALL = "select * from sales"


@pytest.mark.parametrize("split", lot.SPLITS)
def test_the_perfect_agent_is_right_under_every_preset(split):
    for index, name in enumerate([*PRESETS, *PRESETS[:3]]):
        played = Harnessed(table.make(split, index), harness.preset(name))
        assert play(played, harness.solver(played)) == 1.0


def changes_the_table():
    yield "query", {"sql": "update sales set amount = 0"}
    yield "query", {"sql": "delete from sales"}
    yield "query", {"sql": "drop table sales"}
    found = yield "query", {"sql": "select coalesce(sum(amount), 0) from sales"}
    assert found.splitlines()[1] != "0"
    return "0"


def names_all(task):
    found = yield "query", {"sql": "select distinct seller from sales"}
    return ", ".join(found.splitlines()[1:])


def prints_the_right_one_among_others(task):
    right = yield from task.solve()
    return f"{right} or 12"


@pytest.mark.parametrize("index", range(4))
def test_cheaters_and_the_empty_get_nothing(index):
    cheats = (
        lambda task: changes_the_table(),
        names_all,
        prints_the_right_one_among_others,
        lambda task: empty(),
    )
    for cheat in cheats:
        played = Harnessed(table.make("train", index), harness.preset("assistant"))
        assert play(played, harness.agent(played, cheat(played.task))) == 0.0


def empty():
    yield from ()
    return ""


@pytest.mark.parametrize(
    "sql",
    [
        "attach 'other.db' as other",
        "create table more (x)",
        "insert into sales values (1, 2, 3, 4, 5)",
        "pragma table_info(sales)",
        "select 1; select 2",
        "select load_extension('x')",
        "select zeroblob(1000000000)",
        "select nothing from sales",
        "with recursive n(x) as (select 1 union all select x + 1 from n) "
        "select count(*) from n",
        "select count(*) from sales a, sales b, sales c, sales d, sales e",
        "with recursive n(x) as (select 1 union all select x + 1 from n limit 9999) "
        "select sum(instr(replace(hex(zeroblob(49000)), '0', 'a') || x, "
        "substr(replace(hex(zeroblob(49000)), '0', 'a'), 1, 48000) || 'b')) from n",
        "selec",
        "\0",
    ],
)
def test_what_does_not_read_is_refused_in_a_sentence(sql):
    task = table.make("train", 0)
    query = task.abilities["query"].act
    before = query(ALL)
    assert query(sql).startswith("Error: ")
    assert query(ALL) == before
    task.close()


def test_long_results_are_cut_and_empty_ones_have_their_columns():
    query = table.make("train", 0).abilities["query"].act
    assert query(ALL).splitlines()[-1] == "[only the first 40 rows are shown]"
    assert query("select town from sales where year = 3") == "town"
    assert query("") == ""
