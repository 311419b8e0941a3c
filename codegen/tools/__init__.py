"""Implementations of commands other than generate: check, inspect, report, demo.

In: files and options. Out: text, tables and pages for a person.
Invariant: the generator's output depends on nothing in here.
"""
