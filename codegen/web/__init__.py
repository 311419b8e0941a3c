"""A page that runs a generated model in a browser: `burnish generate --web`.

inputs    what the page offers for each input: a picture, ids, numbers
folder    the files of the page: index.html, worker.js, app.py, model.zip

What comes in is the source as it is written and the weights beside it; what goes out
is a folder that any server of files can serve. Pyodide runs it, on NumPy.
"""
