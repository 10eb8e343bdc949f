"""A hard limit of cost: what a day may use, which calls may still go when it runs low, and what it was spent on."""
