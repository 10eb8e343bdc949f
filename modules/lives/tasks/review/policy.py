"""The limits of a verdict. Pure: whatever the model says, the verdict goes no further than the tests allow."""

from __future__ import annotations

from adapters.github.types import ReviewEvent
from modules.services.coding.suites import SuiteState


def event_for(
    asked: ReviewEvent, tests: SuiteState, *, is_weakened: bool, is_whole: bool, is_documents: bool
) -> ReviewEvent:
    """Return the event of a review for which the model asked for `asked`.

    If the changes make tests fail, the review requests changes. Tests that failed before do not prevent an approval. If
    no test gave a result, only documents are approved; if there are no tests, nothing that removed them is; and changes
    that the model saw only in part never are.

    Args:
        asked: by the model.
        tests: their result.
        is_weakened: whether the changes weaken the tests.
        is_whole: whether the model was shown all changes.
        is_documents: whether nothing but documents is changed.

    """
    if tests == "failed":
        return "REQUEST_CHANGES"
    is_tried = {
        "passed": True,
        "failing_before": True,
        "unrun": is_documents,
        "none": not is_weakened,
    }[tests]
    return "COMMENT" if asked == "APPROVE" and not (is_tried and is_whole) else asked
