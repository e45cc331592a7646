"""The laws of a layout as tests for anybody's layout.

Begin with `laws`.
May import ``layouts`` and Hypothesis; nothing of the package imports it.

They are tried on what `strategies` draw, and held against the slow `oracle`.
"""
