"""NVIDIA's shared libraries: where they are, cuDNN's descriptors, workspaces.

In: the name of a library, or a description of arrays for cuDNN.
Out: a loaded library, a handle for each device, and memory that a thread's calls share.
Invariant: a library is loaded once; without cuDNN everything runs, slower.
"""
