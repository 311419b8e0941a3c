"""The gallery: imported models, each with its source and a script to run; examples."""
