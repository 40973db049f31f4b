"""Answer for models that nobody runs, as the tutorial needs it: `python -m hack.stand_in_model 8801 8802`.

Each port is the gateway of a cluster. It answers one question at the path of any replica: its models.
"""

from __future__ import annotations

import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

REPLICA = re.compile(r"/([^/]+)/([^/]+)-[0-9a-f]{5}/v1/models")


class Gateway(BaseHTTPRequestHandler):
    """The gateway of a cluster, with the models behind it."""

    def do_GET(self) -> None:
        """Say which model a replica serves."""
        replica = REPLICA.fullmatch(self.path)
        models = {"object": "list", "data": [{"id": replica[2], "object": "model"}] if replica else []}
        self.send_response(200 if replica else 404)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(models).encode() + b"\n")


def main() -> int:
    """Serve on every port until the end. Returns the exit code."""
    servers = [ThreadingHTTPServer(("127.0.0.1", int(port)), Gateway) for port in sys.argv[1:]]
    threads = [threading.Thread(target=server.serve_forever) for server in servers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return 0


if __name__ == "__main__":
    sys.exit(main())
