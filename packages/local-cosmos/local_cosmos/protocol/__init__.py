"""HTTP: everything that knows of headers, paths and sockets."""
