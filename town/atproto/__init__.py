"""An honest AT Protocol network on loopback: one server that keeps repositories and shows them as Bluesky does."""
