"""Stored trees: what was put comes back, shared files once, damage is found."""

import pytest

from k3.envs.store import Entry, Store
from k3.errors import CheckpointError

TREE = [
    Entry("b", "dir", 0o755),
    Entry("a", "file", 0o644, b"same"),
    Entry("b/c", "file", 0o600, b"same"),
    Entry("b/\udcffx", "link", 0o777, b"../a"),
]


def test_a_tree_comes_back_in_the_order_of_its_paths(tmp_path):
    store = Store(tmp_path / "store")
    key = store.put(TREE)
    assert store.get(key) == sorted(TREE, key=lambda e: e.path)
    assert Store(tmp_path / "store").get(key) == store.get(key)


def test_what_two_trees_share_is_written_once(tmp_path):
    store = Store(tmp_path)
    big = bytes(100_000)
    store.put([Entry("big", "file", 0o644, big)])
    before = store.written_bytes
    store.put([Entry("big", "file", 0o644, big), Entry("new", "file", 0o644, b"x")])
    assert store.written_bytes - before < 400
    again = store.put([Entry("big", "file", 0o644, big)])
    assert store.get(again)[0].data == big


def test_a_missing_or_changed_blob_is_a_sentence(tmp_path):
    store = Store(tmp_path)
    key = store.put(TREE)
    with pytest.raises(CheckpointError, match="needs its stored files"):
        store.get("0" * 64)
    path = store._path(key)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match="with other bytes"):
        store.get(key)
