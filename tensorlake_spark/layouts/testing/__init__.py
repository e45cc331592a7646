"""The laws of a layout as tests for anybody's layout: `laws`, tried on `strategies`, held against the slow `oracle`.

May import ``layouts`` and Hypothesis; nothing of the package imports it. Begin with `laws`.
"""
