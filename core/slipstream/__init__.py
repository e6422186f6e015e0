"""Slipstream: local language models, faster by speculative decoding, with the same answer to the token."""

__version__ = "0.1.0"
