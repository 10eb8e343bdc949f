"""A hard limit of cost: what a day may take, who may still speak when it runs low, and what was spent on what."""
