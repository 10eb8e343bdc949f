"""An AT Protocol network on loopback: one server that stores repositories and presents them as Bluesky does."""
