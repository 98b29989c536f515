"""The command `exactlyonce`; and `exactlyonce ops`, or `python -m exactlyonce.cli`: operators' commands on an application.

Operators' commands run with the application's settings and the operator's identity. No argument is a key or a body, and bodies
are shown only on request.
"""
