"""What stands in a single file in the place of the runtime's engine and modules.

Operators, layers and their helpers are the runtime's own source. The parts here are
smaller forms of what records gradients, moves between devices, and reads and writes
files of every kind. They are never imported: their text is.
"""
