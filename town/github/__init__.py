"""GitHub, as the town has it: accounts, repositories, issues and comments, over the REST interface of the real one."""
