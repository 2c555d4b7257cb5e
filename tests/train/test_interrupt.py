"""A signal waits for the block, once."""

import os
import signal
import threading

import pytest

from k3.train import interrupt


def kill(number=signal.SIGINT):
    os.kill(os.getpid(), number)


def test_a_signal_comes_after_the_block():
    done = []

    def block():
        with interrupt.held():
            kill()
            done.append(1)

    with pytest.raises(KeyboardInterrupt):
        block()
    assert done == [1]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_signal_does_not_wait():
    done = []

    def block():
        with interrupt.held():
            kill()
            kill()
            done.append(1)

    with pytest.raises(KeyboardInterrupt):
        block()
    assert done == []
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_ignored_signal_stays_ignored():
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with interrupt.held():
            kill(signal.SIGTERM)
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)


def test_an_error_of_the_block_gives_the_handlers_back():
    with pytest.raises(ValueError, match="own"), interrupt.held():
        raise ValueError("own")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_another_thread_changes_no_handler():
    seen = []

    def work():
        with interrupt.held():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]
