"""Numbers that several packages share. Names end in their unit: `_MS`, `_S`, `_CHARS`, `_BYTES`."""

SECOND_MS = 1_000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS

# Services and the model.
SESSION_EXPIRY_MARGIN_S = 60
GITHUB_MIN_SPACING_MS = 5000
GITHUB_BODY_MAX_CHARS = 65_000
LLM_IDLE_TIMEOUT_S = 180.0
LLM_ANSWER_LONGEST_S = 3600.0
LLM_LEAST_OUTPUT_TOKENS = 1024
"""What every prompt leaves to the answer."""
LLM_ANSWER_TOKENS = 8_000
"""What the longest answer needs: the text of an essay, a plan or a file."""

# Text that is published.
PORTABLE_MAX_GRAPHEMES = 300
POST_MAX_BYTES = 3000
PROFILE_BIO_MAX_BYTES = 2560
ECHO_SHORT_STEMS = 6

# The agent space.
SPACE_DEFAULT_NAME = "agent-space"
"""The name of a room that has none of its own."""
SPACE_DEFAULT_PORT = 7777
SPACE_CLAIM_TTL_MS = MINUTE_MS
SPACE_RECONNECT_INTERVAL_MS = 5 * MINUTE_MS
SPACE_IDLE_RESET_MS = 5 * MINUTE_MS

# Files.
SELF_MAX_BYTES = 256 * 1024
TEXT_MAX_BYTES = 1024 * 1024
STATE_MAX_BYTES = 16 * 1024 * 1024
LOG_MAX_BYTES = 10 * 1024 * 1024
LEFT_FREE_BYTES = 256 * 1024 * 1024
"""How much space a copy of a home or of its database leaves free on the disk."""
LOG_ROTATIONS = 3
LOG_MAX_DAYS = 14
OWNER_CAUSE = "owner"
"""The cause of what the owner asks for in private; followed by `:` and the number of the message, if there is one."""
