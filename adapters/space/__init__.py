"""The agent space on the wire: frames, the room and its server, the member and its client, discovery."""
