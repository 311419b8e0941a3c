"""Matrix products: a few rows with weights, batches, Einstein sums.

In: nodes of products. Out: records, and the layouts of the rows they read and write.
"""
