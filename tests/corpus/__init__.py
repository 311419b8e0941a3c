"""The frozen corpus: digests of what the generator writes for many model files.

    python -m tests.corpus                        compare with digests.txt
    python -m tests.corpus --write                write digests.txt
    python -m tests.corpus --against REV          compare with a commit's
    python -m tests.corpus --folder F             F: what the tests recorded (below)
    pytest -p tests.corpus.recorder ...           record files that tests generate from

digests.txt has what needs no peer: ONNX's node cases, graphs built by hand, a folder
with a configuration, the gallery. Files that PyTorch exports differ with its version:
tests record them in $BURNISH_CORPUS, and two commits are compared over that folder.
A digest is that of the source without the header (file names, digests, versions), and
of the weights: paths, dtypes, shapes and values.
"""
