"""Clients of everything outside the program. Every public call returns `ApiResult`; no adapter imports another."""
