"""The decision of contract 43, section 2, once more: rows of a table that are tried in their order.

Reads cases as JSON, one per line, and writes [row, allowed, reason, deferred_until] for each. The end of
quiet hours is searched minute by minute with zoneinfo.
"""

import json
import sys
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

ORDER = ("workflows", "topics", "categories")


def entries(preferences, case):
    """What was chosen, by kind: workflow, topic, category."""
    preferences = preferences or {}
    found = {}
    channel = case["channel"]
    if case["workflow"]:
        found["workflows"] = (preferences.get("workflows") or {}).get(case["workflow"]["key"])
    if case["topic"]:
        found["topics"] = ((preferences.get("topics") or {}).get(case["topic"]["key"]) or {}).get(channel)
    if case["category"]:
        chosen = (preferences.get(channel) or {}).get("categories") or {}
        found["categories"] = chosen.get(case["category"]["slug"])
    return found


def explicit(preferences, case):
    found = entries(preferences, case)
    for kind in ORDER:
        value = found.get(kind)
        if value is None:
            continue
        is_off = case["topic"] and case["topic"]["default"] == "off"
        if kind == "categories" and value and is_off:
            return None  # a member of such a topic has to opt in to the topic itself
        return value
    return None


def ends(case, channel):
    for one in case["subscriber"]["unsubscribes"]:
        if one["channel"] == channel:
            if one["category"] == "":
                return True
            if case["category"] and one["category"] == case["category"]["slug"]:
                return True
    return False


def own(case):
    return (case["subscriber"] or {}).get("preferences") or {}


def base(case):
    """Rows 1 to 9, as (row, allowed, reason)."""
    subscriber, category, channel = case["subscriber"], case["category"], case["channel"]
    if subscriber and subscriber["status"] == "blocked":
        return 1, False, "blocked"
    if case["is_suppressed"]:
        return 2, False, "suppressed"
    if not (subscriber or category or case["topic"] or case["workflow"]):
        return 0, True, None  # a raw address
    if category and channel not in category["channels"]:
        return 3, False, "category_channels"
    critical = [
        category and category["critical"],
        case["workflow"] and case["workflow"]["is_critical"],
        case["ignores_preferences"],
    ]
    if any(critical):
        return 4, True, None
    if subscriber and (subscriber["status"] == "unsubscribed" or ends(case, channel)):
        return 5, False, "unsubscribed"
    if (own(case).get(channel) or {}).get("enabled") is False:
        return 6, False, "channel_disabled"
    value = explicit(own(case), case)
    if value is not None:
        return 7, value, None if value else "preference"
    defaults = case["project"]["default_preferences"] or {}
    value = explicit(defaults, case)
    if value is None and (defaults.get(channel) or {}).get("enabled") is False:
        value = False
    if value is None:
        for noun in (case["topic"], category):
            if noun and noun["default"] == "off":
                value = False
    if value is not None:
        return 8, value, None if value else "default"
    return 9, True, None


def minute_of(text):
    return int(text[:2]) * 60 + int(text[3:])


def is_quiet(moment, hours, zone):
    local = moment.astimezone(zone)
    minute = local.hour * 60 + local.minute
    start, end = minute_of(hours["start"]), minute_of(hours["end"])
    if start < end:
        return start <= minute < end
    return minute >= start or minute < end


def quiet_end(at, hours, zone_name):
    """The first moment from `at` (epoch milliseconds) that is not quiet; None where `at` itself is not."""
    zone = ZoneInfo(zone_name)
    moment = datetime.fromtimestamp(0, timezone.utc) + timedelta(milliseconds=at)
    if not is_quiet(moment, hours, zone):
        return None
    moment = moment.replace(second=0, microsecond=0)
    while is_quiet(moment, hours, zone):
        moment += timedelta(minutes=1)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def decide(case):
    row, allowed, reason = base(case)
    if row == 0:
        return [9, True, None, None]
    if not allowed or row == 4 or case["stream"] == "auth":
        return [row, allowed, reason, None]
    subscriber, project = case["subscriber"], case["project"]
    cap = project["frequency_cap"]
    if subscriber and cap and case["recent"] >= cap["count"]:
        return [10, False, "frequency_cap", None]
    hours = own(case).get("quiet_hours")
    if hours is None:
        hours = project["quiet_hours"]
    if hours and hours["enabled"] and case["channel"] in hours["channels"]:
        zone = hours["timezone"] or (subscriber or {}).get("timezone") or project["timezone"]
        until = quiet_end(case["at"], hours, zone)
        if until:
            return [11, True, "quiet_hours", until]
    return [row, allowed, reason, None]


def quiet(case):
    return quiet_end(case["at"], case["hours"], case["zone"])


ASKED = {"decide": decide, "quiet": quiet}[sys.argv[1]]
for line in sys.stdin:
    print(json.dumps(ASKED(json.loads(line))))
