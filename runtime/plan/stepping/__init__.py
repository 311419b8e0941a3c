"""Steps of training on a CPU: a function that trains modules, and its plans.

In come a function and the arguments of a call; out comes a plan for each signature, or
the eager call. The numbers that a call gives are the plan's, or it is made anew.
"""
