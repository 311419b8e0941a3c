"""Lowering of estimators: ensembles of decision trees, support vector machines."""
