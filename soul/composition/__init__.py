"""The composition root: builds every part of one SOUL once and passes each its dependencies."""
