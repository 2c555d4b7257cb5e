"""What `k3.data` offers by name."""

import k3.data


def test_public_names():
    assert k3.data.__all__ == ["Tokenizer"]
    assert all(hasattr(k3.data, name) for name in k3.data.__all__)
