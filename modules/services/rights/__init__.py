"""People's rights over their own data: what they allow, what they ask for, and how it is carried out."""
