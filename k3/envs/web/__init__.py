"""Web pages, graded in a real browser by structure, behaviour and pixels."""

from k3.envs.web.browser import Browser as Browser
from k3.envs.web.task import WebPage as WebPage
from k3.envs.web.task import make as make

__all__ = ["Browser", "WebPage", "make"]
