"""The wire protocol of the agent space: frames, the room and its server, the member and its client, discovery."""
