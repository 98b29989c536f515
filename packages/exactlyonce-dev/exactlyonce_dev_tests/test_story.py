"""The story of an app, over its processes."""

from __future__ import annotations

from exactlyonce_dev.story import LOST, MOST_KEPT, UNDER_WAY, Story


def begun(number: int) -> dict[str, object]:
    return {"delivery": number, "message": f"m-{number}", "envelope": {}}


def test_a_delivery_is_under_way_until_its_outcome_is_told() -> None:
    story = Story()
    story.hear(begun(1))
    (row,) = story.rows()
    assert (row["id"], row["outcome"]) == ("1.1", UNDER_WAY)
    story.hear({"delivery": 1, "outcome": "processed", "reason": None, "seconds": 0.1})
    (row,) = story.rows()
    assert (row["message"], row["outcome"], row["seconds"]) == ("m-1", "processed", 0.1)
    assert story.version == 2


def test_a_delivery_under_way_in_a_killed_process_is_lost_and_numbers_begin_anew() -> None:
    story = Story()
    story.hear(begun(1))
    story.end_process()
    story.hear(begun(1))
    assert [(row["id"], row["outcome"]) for row in story.rows()] == [("2.1", UNDER_WAY), ("1.1", LOST)]


def test_a_parked_message_is_a_row_with_its_reason() -> None:
    story = Story()
    story.hear({"parked": "m-1", "entity": '["order","o","o"]', "reason": "it failed"})
    (row,) = story.rows()
    assert (row["outcome"], row["reason"], row["entity"]) == (
        *("parked", "it failed"),
        {"name": "order/o", "place": '["order","o","o"]'},
    )


def test_the_story_keeps_the_latest_deliveries_and_ignores_ends_of_forgotten_ones() -> None:
    story = Story()
    for number in range(MOST_KEPT + 1):
        story.hear(begun(number))
    story.hear({"delivery": 0, "outcome": "processed"})
    assert len(story.rows()) == MOST_KEPT
    assert story.rows()[-1]["message"] == "m-1"


def step(kind: str, look: str) -> dict[str, object]:
    return {"delivery": 1, "step": {"kind": kind, "look": look, "effect": "SaveEntity", "title": "Commit"}}


def test_steps_and_outputs_are_those_of_their_delivery_in_order() -> None:
    story = Story()
    story.hear(begun(1))
    story.hear(step("read", ""))
    story.hear(step("write", "good"))
    story.hear({"delivery": 1, "output": {"message": "order/o/1", "id": "1", "destination": "stocks"}})
    (row,) = story.rows()
    assert [item["number"] for item in row["steps"]] == [1, 2]
    assert row["outputs"] == [{"message": "order/o/1", "id": "1", "destination": "stocks"}]


def test_the_next_write_without_a_reply_is_the_one_that_somebody_lost() -> None:
    story = Story()
    for kind in ("lag", "lost-applied", "lost-not-applied", "lost-applied"):
        story.expect(kind)
    story.hear(begun(1))
    for kind, look in (("read", "lost"), ("write", "good"), ("write", "conflict"), ("write", "lost")):
        story.hear(step(kind, look))
    story.calm()
    story.hear(step("write", "lost"))
    assert [row.get("lost") for row in story.rows()[0]["steps"]] == [None, None, "reply", "request", None]


def test_an_output_that_the_sweeper_publishes_is_a_row_of_its_own() -> None:
    story = Story()
    output = {"message": "order/o/1", "id": "1", "destination": "stocks"}
    story.hear({"maintained": {"type": "order", "key": "k", "name": "order/o"}, "output": output, "at": "2026-01-01"})
    (row,) = story.rows()
    assert (row["outcome"], row["outputs"]) == ("published later", [output])


def test_tries_of_calls_and_states_are_for_a_test_and_not_for_the_page() -> None:
    story = Story()
    story.hear(begun(1) | {"before": {"id": "o"}})
    story.hear({"call": "c", "received": {"failed": "TimeoutError"}})
    story.hear({"call": "c", "received": {"status": 201, "headers": {}, "body": "{}"}})
    assert "before" not in story.rows()[0]
    whole = story.whole()
    assert whole["rows"][0]["before"] == {"id": "o"}
    assert [item.get("status") for item in whole["tries"]["c"]] == [None, 201]
