"""What the commands do besides generating: check, inspect, report, upgrade, demo.

In: files and options. Out: text, tables and pages for a person.
Invariant: the generator's output depends on nothing in here.
"""
