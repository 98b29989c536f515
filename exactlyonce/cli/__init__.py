"""`python -m exactlyonce.cli`: operators' commands on an application.

It runs with the application's settings and the operator's identity. No argument is a key or a body, and bodies are shown only
on request.
"""
