"""The portal's own log: one line of JSON for machines, or a short line for a terminal."""

import logging

import structlog
from structlog.typing import Processor

# Loggers of structlog, django-structlog's among them, go the way of all others: levels, handlers and format of LOGGING.
structlog.configure(
    processors=[
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.filter_by_level,
        structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
    ],
    logger_factory=structlog.stdlib.LoggerFactory(),
    wrapper_class=structlog.stdlib.BoundLogger,
    cache_logger_on_first_use=True,
)


def formatter(*, plain: bool) -> logging.Formatter:
    """A logging formatter; every line carries the request id that django-structlog has bound."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    last = (
        structlog.dev.ConsoleRenderer(colors=False) if plain else structlog.processors.JSONRenderer(ensure_ascii=False)
    )
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[*shared, structlog.stdlib.ExtraAdder()],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            last,
        ],
    )
