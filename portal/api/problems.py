"""Problem details (RFC 9457)."""

from rest_framework.views import exception_handler

problem_response = exception_handler
