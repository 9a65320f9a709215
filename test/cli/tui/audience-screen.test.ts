import { describe, expect, test } from "bun:test"
import type { Publish } from "../../../cli/commands/topics-publish"
import { screenLines as linesOf } from "../../../cli/tui/monitor"
import { press } from "../../../cli/tui/press"
import type { State } from "../../../cli/tui/state"
import { applyNews } from "../../../cli/tui/store"
import {
  consentRow,
  idAt,
  monitorWith,
  NOW,
  publishRow,
  readOf,
  subscriberRow,
  topicRow,
} from "./rows"

const READ = { is: "rows", list: "topics", more: false } as const
const OPENED = { is: "detail", screen: "audience", id: "user-1042", tab: "Timeline" } as const
const TOPICS = [topicRow("news", { subscriber_count: 100_000 }), topicRow("offers")]

/** On the screen, with two topics and these publishes to the first one. */
function open(publishes: Publish[], columns = 120, lines = 24): State {
  const screen = press(monitorWith(1, columns, lines), "6").state
  const known = applyNews(screen, { ...READ, rows: TOPICS }).state
  return applyNews(known, { is: "rows", list: "publishes", of: "news", rows: publishes }).state
}

const after = (state: State, ...keys: string[]) =>
  keys.reduce((now, key) => press(now, key).state, state)

const drawn = (state: State) => linesOf(state, false).join("\n")

describe("the Audience screen", () => {
  test("asks for the topics, and for the publishes to the chosen one and to others", () => {
    const opened = press(monitorWith(1), "6")
    expect(opened.intents).toEqual([{ do: "load_list", list: "topics" }])
    const known = applyNews(opened.state, { ...READ, rows: TOPICS })
    expect(known.intents).toEqual([
      { do: "load_list", list: "publishes", of: "news" },
      { do: "load_list", list: "publishes", of: "offers" },
    ])
    const below = press(known.state, "j")
    expect(below.intents).toEqual([{ do: "load_list", list: "publishes", of: "offers" }])
    const late = {
      is: "rows" as const,
      list: "publishes" as const,
      of: "news",
      rows: [publishRow("p1")],
    }
    expect(applyNews(below.state, late).state.lists.publishes.rows).toBeNull()
  })

  test("shows topics with their members, and publishes with what became of them", () => {
    const text = drawn(open([publishRow("p1")]))
    expect(text).toContain("[6 Audience]")
    expect(text).toMatch(/▸ news +News +100,000 +on +private/)
    expect(text).toMatch(/12:00:00 +completed +▓{10} 100 % +1,204 +46 +4 +0 +12:01:00/)
    expect(text).toContain("2 topics   1 newest publishes")
  })

  test("tells of one that runs its speed, what is done and left, and its expected end", () => {
    const at = (done: number): Publish => ({
      ...publishRow("p1", { status: "fanning_out", completed_at: null, audience: 1000 }),
      channels: { email: { planned: 1000, sent: done, skipped: NOBODY, failed: 0 } },
    })
    const first = open([at(100)])
    const later = applyNews(first, { is: "tick", now: NOW + 2000 }).state
    const second = applyNews(later, { is: "rows", list: "publishes", of: "news", rows: [at(300)] })
    expect(drawn(second.state)).toMatch(/sending +▓▓▓░{7} 30 % +300 +0 +0 +700 +100\/s +in 7 s/)
    expect(drawn(second.state)).toContain("1 running")
  })

  test("says when a scheduled one begins, and why another one waits or failed", () => {
    const open_ = { completed_at: null, audience: 0, channels: {} }
    const text = drawn(
      open([
        publishRow("p1", {
          ...open_,
          status: "scheduled",
          scheduled_at: new Date(NOW + 7_200_000).toISOString(),
        }),
        publishRow("p2", { ...open_, status: "paused", status_reason: "account_frozen" }),
        publishRow("p3", { status: "failed", status_reason: "expired" }),
        publishRow("p4", { ...open_, status: "queued", status_reason: "held_after_restore" }),
      ]),
    )
    expect(text).toMatch(/held [0 ]+since a restore/)
    expect(text).toMatch(/scheduled [0 ]+in 2/)
    expect(text).toMatch(/paused [0 ]+account_frozen/)
    expect(text).toMatch(/failed ✗ .*12:01:00 expired/)
  })

  test("tells why recipients of the chosen publish were skipped", () => {
    const state = after(open([publishRow("p1")]), "<tab>")
    expect(drawn(state)).toContain("1,204 sent to an audience of 1,250")
    expect(drawn(state)).toContain("skipped: 3 no address, 41 preference, 2 suppressed")
    expect(press(state, "y").intents).toEqual([{ do: "copy", text: "p1" }])
    expect(press(after(state, "<escape>"), "y").intents).toEqual([{ do: "copy", text: "news" }])
  })

  test("cancels the rest of a publish after a clear yes, and not one that is over", () => {
    const running = publishRow("p1", { status: "fanning_out", completed_at: null })
    const asked = after(open([running, publishRow("p2")]), "<enter>", "c")
    expect(asked.question?.text).toStartWith("Cancel the rest of this publish to news?")
    expect(press(asked, "n").intents).toEqual([])
    expect(press(asked, "y").intents).toMatchObject([
      { name: "POST /v1/topics/{topic_key}/publishes/{publish_id}/cancel" },
    ])
    expect(press(asked, "y").intents).toMatchObject([
      { input: { params: { topic_key: "news", publish_id: "p1" } } },
    ])
    const over = after(open([running, publishRow("p2")]), "<enter>", "j", "c")
    expect([over.question, over.notice?.text]).toEqual([null, "the publish is over: completed"])
    const above = after(open([running]), "c")
    expect(above.notice?.text).toContain("choose a publish first")
  })

  test("marks a topic with an open publish and shows it first, whichever is chosen", () => {
    const open_ = { topic_key: "offers", completed_at: null }
    const running = publishRow("p2", { ...open_, status: "fanning_out" })
    const planned = publishRow("p3", { ...open_, status: "scheduled" })
    const publishes = [planned, running, publishRow("p1", { topic_key: "offers" })]
    const news = { is: "rows" as const, list: "publishes" as const, of: "offers", rows: publishes }
    const state = applyNews(open([]), news).state
    const text = drawn(state)
    expect(text).toMatch(/KEY .*PUBLISHING/)
    expect(text).toMatch(/ {2}offers +Offers +2 +on +private +sending \+1 [\s\S]*▸ news +News/)
    expect(text).toContain("2 topics   1 publishing   0 newest publishes")
    expect(state.lists.publishes.rows).toEqual([])
    const above = press(state, "k")
    expect(above.intents).toEqual([{ do: "load_list", list: "publishes", of: "offers" }])
    const again = applyNews(above.state, { ...READ, rows: TOPICS }).state
    expect(again.lists.topics.rows?.map(({ key }) => key)).toEqual(["offers", "news"])
    const over = applyNews(again, { ...news, rows: [publishRow("p2", open_over)] }).state
    expect(drawn(over)).not.toContain("sending")
  })

  test("sees an open publish to a topic that is far below the others", () => {
    const many = Array.from({ length: 60 }, (_, at) => topicRow(`topic-${at}`))
    const screen = press(monitorWith(1, 120, 24), "6").state
    const news = { ...READ, rows: many }
    let { state, intents } = applyNews(screen, news)
    const asked = new Set<string>()
    for (let looks = 0; looks < 25; looks++) {
      for (const one of intents) if (one.do === "load_list") asked.add(one.of ?? "")
      ;({ state, intents } = applyNews(state, news))
      expect(intents.length).toBeLessThanOrEqual(3)
    }
    expect(asked.size).toBe(60)
    const topic_key = "topic-59"
    const planned = publishRow("p1", { topic_key, completed_at: null, status: "scheduled" })
    const marked = applyNews(state, {
      is: "rows",
      list: "publishes",
      of: topic_key,
      rows: [planned],
    }).state
    expect(drawn(marked)).toMatch(/topic-59 +Topic-59 +2 +on +private +scheduled [\s\S]*▸ topic-0 /)
  })

  test("says that a topic has no publish yet, once it is known", () => {
    expect(drawn(open([]))).toContain("no publish to this topic yet")
    const below = press(open([publishRow("p1")]), "j").state
    expect(drawn(below)).toContain("loading…")
  })

  test("finds topics that are not among the newest, and Esc shows all again", () => {
    const screen = press(monitorWith(1), "6").state
    const news = { ...READ, rows: TOPICS, more: true }
    const state = applyNews(screen, news).state
    expect(drawn(state)).toContain("2+ topics (/ finds others)")
    const typed = after(state, "/", ..."old")
    expect(drawn(typed)).toContain("topics with: old")
    const asked = press(typed, "<enter>")
    expect(asked.intents).toEqual([{ do: "load_list", list: "topics", of: "old" }])
    expect(applyNews(asked.state, news).state.lists.topics.rows).toBeNull()
    const found = { ...news, of: "old", rows: [topicRow("old-news")], more: false }
    const shown = applyNews(asked.state, found).state
    expect(drawn(shown)).toMatch(/▸ old-news/)
    expect(drawn(shown)).toContain("search: old   1 topic ")
    const nothing = applyNews(asked.state, { ...found, rows: [] }).state
    expect(drawn(nothing)).toContain('no topic has "old" in it: Esc shows all topics')
    expect(press(nothing, "<escape>").intents).toEqual([{ do: "load_list", list: "topics" }])
    expect(press(shown, "6").intents).toEqual([{ do: "load_list", list: "topics", of: "old" }])
  })

  test("says what to do where there is no topic, or no scope", () => {
    const screen = press(monitorWith(1), "6").state
    const none = applyNews(screen, { ...READ, rows: [] }).state
    expect(drawn(none)).toContain("belfry topics create")
    const problem = "this needs a key with the scope topics:read"
    expect(
      drawn(applyNews(screen, { is: "problem", screen: "audience", problem }).state),
    ).toContain(problem)
  })
})

const open_over = { topic_key: "offers", status: "completed" as const }

const NOBODY = { no_address: 0, preference: 0, suppressed: 0, frequency_cap: 0, quota: 0 }

const AT = new Date(NOW).toISOString()

const DEVICE = {
  ...{ id: idAt(NOW), device_id: "pixel-7", user_id: "user-1042", subscriber_id: null },
  ...{
    platform: "android" as const,
    provider: "fcm" as const,
    token: null,
    device_name: "Ann's phone",
  },
  ...{ app_id: null, app_version: null, os_version: null, locale: null, timezone: null },
  ...{ apns_environment: null, status: "expired" as const, status_reason: "unregistered" },
  ...{ failure_count: 1, metadata: {}, last_active_at: AT, last_success_at: null },
  ...{ created_at: AT, updated_at: AT, scope: { type: "project" as const } },
}

describe("a subscriber on the Audience screen", () => {
  const found = () => ({
    subscriber: subscriberRow(),
    reachability: {
      email: { allowed: false, reason: "unsubscribed" as const, next_allowed_at: null },
      push: { allowed: false, reason: "no_address" as const, next_allowed_at: null },
      sms: {
        allowed: true,
        reason: "quiet_hours" as const,
        next_allowed_at: "2026-11-22T07:00:00.000Z",
      },
      in_app: { allowed: true, reason: null, next_allowed_at: null },
    },
    topics: [{ key: "news", name: "News", subscribed_at: "2026-11-21T12:00:00.000Z" }],
    consents: [consentRow()],
    devices: [DEVICE],
    messages: undefined,
  })

  const asked = () => after(open([]), "s", ..."user-1042")

  test("is asked for by its id or external id", () => {
    expect(drawn(asked())).toContain("subscriber: user-1042")
    const opened = press(asked(), "<enter>")
    expect(opened.intents).toEqual([readOf("audience", "user-1042")])
    expect(press(after(open([]), "s"), "<enter>").intents).toEqual([])
    expect(after(asked(), "<escape>").details.audience).toBeUndefined()
  })

  test("shows reachability with its reasons, consents, topics and what the key may not read", () => {
    const opened = after(asked(), "<enter>")
    expect(drawn(opened)).toContain("loading…")
    const news = { ...OPENED, found: found() }
    const text = drawn(applyNews({ ...opened, columns: 140, lines: 40 }, news).state)
    expect(text).toMatch(/external_id +user-1042/)
    expect(text).toMatch(/email +✗ unsubscribed/)
    expect(text).toMatch(/push +✗ no_address/)
    expect(text).toMatch(/sms +✓ quiet_hours until/)
    expect(text).toMatch(/in_app +✓/)
    expect(text).toMatch(/granted +email +category newsletter +api/)
    expect(text).toMatch(/DEVICE +NAME[\s\S]+pixel-7 +Ann's phone +android +fcm +expired/)
    expect(text).toMatch(/LAST MESSAGES/)
    expect(text).toContain("this key may not read it")
    const late = applyNews(opened, { ...news, id: "other" }).state
    expect(late.details.audience?.found).toBeNull()
  })

  test("tells the end of one topic from the end of a whole channel", () => {
    const withdrawn = { action: "withdrawn", source: "one_click", category: null } as const
    const consents = [
      consentRow({ ...withdrawn, scope: { type: "topic", key: "news" } }),
      consentRow({ ...withdrawn, scope: null }),
    ]
    const opened = after(asked(), "<enter>")
    const all = { ...found(), consents }
    const news = { ...OPENED, found: all }
    const text = drawn(applyNews({ ...opened, lines: 40 }, news).state)
    expect(text).toMatch(/withdrawn +email +topic news +one_click/)
    expect(text).toMatch(/withdrawn +email +all +one_click/)
  })

  test("is closed by Esc, copied by y, and says where it is not there", () => {
    const opened = after(asked(), "<enter>")
    expect(press(opened, "y").intents).toEqual([{ do: "copy", text: "user-1042" }])
    expect(after(opened, "<escape>").details.audience).toBeUndefined()
    const problem = "There is no such subscriber in this project."
    const news = { ...OPENED, found: null, problem }
    expect(drawn(applyNews(opened, news).state)).toContain(problem)
  })
})
