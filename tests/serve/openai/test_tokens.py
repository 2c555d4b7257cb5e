"""The tokenizer, the models, the version and the metrics over HTTP."""

import k3


def test_tokenize_and_back(client):
    found = client.post(
        "/tokenize", {"prompt": "ab<|open|>", "add_special_tokens": True}
    )
    assert found.json()["count"] == 10
    assert found.json()["max_model_len"] == 4096
    back = client.post("/detokenize", {"tokens": found.json()["tokens"]}).json()
    assert back == {"prompt": "ab<|open|>"}
    named = client.post("/tokenize", {"prompt": "[BOS]", "return_token_strs": True})
    assert named.json()["tokens"] == [256]
    assert named.json()["token_strs"] == ["[BOS]"]


def test_a_conversation_is_tokenized_as_chat_does(client, worker):
    client.chat("hi", reasoning_effort="low")
    messages = [{"role": "user", "content": "hi"}]
    body = {"messages": messages, "reasoning_effort": "low"}
    found = client.post("/tokenize", body).json()["tokens"]
    assert tuple(found) == worker.requests[-1].tokens


def test_tokenize_refuses_what_it_cannot_read(client):
    for body in ({}, {"prompt": "a", "messages": []}, {"prompt": 3}, {"x": 1}):
        assert client.post("/tokenize", body).status_code == 400
    for tokens in (None, "a", [9999], ["a"]):
        assert client.post("/detokenize", {"tokens": tokens}).status_code == 400


def test_the_tokenizer_says_its_special_tokens(client):
    found = client.get("/tokenizer_info").json()
    assert found["bos_token"] == "[BOS]"
    assert found["bos_token_id"] == 256
    assert found["chat_template"] is None


def test_models_and_version(client):
    found = client.get("/v1/models").json()["data"]
    assert [each["id"] for each in found] == ["toy", "alias"]
    assert found[0]["max_model_len"] == 4096
    assert client.get("/v1/models/alias").json()["id"] == "alias"
    assert client.get("/v1/models/a/b").status_code == 404
    assert client.get("/version").json() == {"version": k3.__version__}


def test_metrics_carry_the_names_that_dashboards_know(client, worker):
    worker.says = "ab"
    client.complete("ab")
    client.get("/nothing")
    text = client.get("/metrics").text
    for line in (
        'k3:num_requests_running{model_name="toy"} 2.0',
        'k3:prefix_cache_queries_total{model_name="toy"} 40.0',
        'k3:prefix_cache_hits_total{model_name="toy"} 16.0',
        'k3:time_to_first_token_seconds_count{model_name="toy"} 1.0',
        'k3:inter_token_latency_seconds_count{model_name="toy"} 1.0',
        'k3:request_success_total{finished_reason="stop",model_name="toy"} 1.0',
    ):
        assert line in text
    for name in ("spec_decode_num_draft_tokens_total", "kv_cache_usage_perc"):
        assert f"k3:{name}" in text


def test_the_cache_is_reset_under_both_names(client, worker):
    assert client.post("/reset_prefix_cache", {}).json() == {"success": True}
    assert client.get("/flush_cache").status_code == 200
    assert worker.resets == 2
