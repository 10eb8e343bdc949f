"""How a SOUL reaches the world. Every public call returns `ApiResult`; no adapter imports another."""
