"""Serves one model file on loopback, as an OpenAI-compatible service; runs in the environment that get_model.py makes.

It is a separate process, because a failure of the server ends its whole process. Prints READY, serves until SIGTERM.

Usage: serve.py MODEL.gguf PORT [CONTEXT_TOKENS]
"""

import signal
import sys

import xllamacpp


def main(path: str, port: str, context: str = "4096") -> None:
    """Load the model and serve it."""
    stops = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, stops)
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.hostname = "127.0.0.1"
    params.port = int(port)
    params.n_ctx = int(context)
    params.n_parallel = 1
    params.use_jinja = True  # NOTE(self): without it the server offers no tools
    params.warmup = True
    server = xllamacpp.Server(params)
    sys.stdout.write(f"READY {server.listening_address}\n")
    sys.stdout.flush()
    signal.sigwait(stops)


if __name__ == "__main__":
    main(*sys.argv[1:])
