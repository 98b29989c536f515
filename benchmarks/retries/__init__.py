"""One client that repeats its HTTP requests, and products that are killed meanwhile: `python -m benchmarks.retries`."""
