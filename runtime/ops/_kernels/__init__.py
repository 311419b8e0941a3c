"""How operators compute on NumPy arrays: windows, rows, blocks, recurrent cells.

No operator is declared here; the files beside this folder declare them.
"""
