"""What each tool of the AgentDojo suites is in our terms: whether it looks or acts, and whose words it brings in."""

from common.provenance import Provenance

ACTS = frozenset(
    {
        # workspace
        "send_email",
        "delete_email",
        "create_calendar_event",
        "cancel_calendar_event",
        "reschedule_calendar_event",
        "add_calendar_event_participants",
        "append_to_file",
        "create_file",
        "delete_file",
        "share_file",
        # travel
        "reserve_hotel",
        "reserve_car_rental",
        "reserve_restaurant",
        # banking
        "send_money",
        "schedule_transaction",
        "update_scheduled_transaction",
        "update_password",
        "update_user_info",
        # slack
        "add_user_to_channel",
        "send_direct_message",
        "send_channel_message",
        "invite_user_to_slack",
        "remove_user_from_slack",
        "post_webpage",
        "get_webpage",  # it reaches an address of the model's choice, and the address alone can carry data away
    }
)

OWN_WORDS = frozenset(
    {
        # results with the owner's own data, plain numbers, or the echo of what was just asked for
        "get_current_day",
        "get_user_information",
        "search_contacts_by_name",
        "search_contacts_by_email",
        "get_iban",
        "get_balance",
        "get_scheduled_transactions",
        "get_user_info",
        "send_email",
        "create_calendar_event",
        "create_file",
        "reserve_hotel",
        "reserve_car_rental",
        "reserve_restaurant",
        "send_money",
        "schedule_transaction",
        "update_scheduled_transaction",
        "update_password",
        "update_user_info",
        "add_user_to_channel",
        "send_direct_message",
        "send_channel_message",
        "invite_user_to_slack",
        "remove_user_from_slack",
        "post_webpage",
    }
)


def words_in(tool: str) -> Provenance | None:
    """Return whose words the result of `tool` holds, in the form of `ToolResult.provenance`."""
    return None if tool in OWN_WORDS else Provenance.STRANGER
