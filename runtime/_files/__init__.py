"""Reading and writing files safely: limits, whole files, paths, text of strangers."""
