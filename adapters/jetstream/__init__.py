"""What happens in other people's repositories, as it happens: Jetstream, version 2."""
