"""Reading and writing files safely: limits, atomic files, paths, untrusted text."""
