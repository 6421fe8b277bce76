"""Birchbark inside other libraries, in their words: a module for each, which needs its extra."""
