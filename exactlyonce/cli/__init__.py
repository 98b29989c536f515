"""`python -m exactlyonce.cli`: what an operator does about an application, from a terminal.

It runs with the application's own settings and an identity of the operator's: no key and no body is ever an argument, and
bodies are shown only where they are asked for.
"""
