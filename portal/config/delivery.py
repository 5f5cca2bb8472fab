"""What a worker still owes a broker that has gone away: nothing."""

from kombu.transport.redis import QoS


class ForgivingQoS(QoS):
    """Deliveries over a line that is gone are left to themselves: kombu 5.7 insists, and the whole worker dies of it.

    Nothing needs to be given back or acknowledged there: tasks are hints and may run twice; the broker gives a hint
    again after its visibility timeout, the sweep sooner.
    """

    # At the loss of the line, what is unacknowledged would be given back over that very line.
    restore_at_shutdown = False

    def ack(self, delivery_tag: str) -> None:
        """A task that ends after the loss is acknowledged on the channel it came by, which is closed."""
        if not self.channel.closed:
            super().ack(delivery_tag)

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        """The same for a task that is refused."""
        if not self.channel.closed:
            super().reject(delivery_tag, requeue=requeue)
