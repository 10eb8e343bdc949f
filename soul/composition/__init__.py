"""The composition root: builds every part of one SOUL once and hands each what it needs."""
