"""The town's GitHub: accounts, repositories, issues and comments through the REST API of the real one."""
