"""Serve the page that reads digits as one draws them.

python -m burnish.models.mnist.web [--out DIR] [--port 8000]
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from burnish.codegen.web.folder import APP, planned, write

MODEL = Path(__file__).parent.parent


def build(folder: Path) -> Path:
    """Write the page below `folder`; the folder to serve."""
    source = MODEL / "mnist.py"
    page = planned(
        "mnist", source.read_text("utf-8"), folder, loader="from_file", force=False
    )
    page.folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(Path(__file__).with_name(APP), page.folder / APP)
    write(page, [source, MODEL / "mnist.safetensors"])
    return page.folder


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--out", type=Path, help="where the page stays (default: nowhere)"
    )
    parser.add_argument("--port", type=int, default=8000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as passing:
        folder = build(options.out or Path(passing))
        handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
        with ThreadingHTTPServer(("127.0.0.1", options.port), handler) as server:
            print(f"http://127.0.0.1:{server.server_port}/ (Ctrl+C ends)", flush=True)
            try:
                server.serve_forever()
            except KeyboardInterrupt:
                return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
