"""The command line's words: the parser, pairs, completion, messages of failures.

In: arguments, or an exception. Out: parsed options, or a message and an exit status.
Invariant: nothing heavy is imported, and a user's mistake gives no traceback.
"""
