import { expect, test } from "bun:test"
import {
  type DecidedSubscriber,
  type DecisionInput,
  decide,
  plainCategory,
} from "../../src/subscribers/decision"

const NOON = Date.parse("2026-11-22T12:00:00.000Z")
const NIGHT = Date.parse("2026-11-22T23:30:00.000Z")

const PERSON: DecidedSubscriber = {
  status: "active",
  timezone: null,
  preferences: null,
  unsubscribes: [],
}

const PLAIN: DecisionInput = {
  subscriber: PERSON,
  is_suppressed: false,
  category: null,
  topic: null,
  workflow: null,
  channel: "email",
  stream: "transactional",
  project: { default_preferences: null, quiet_hours: null, timezone: "UTC", frequency_cap: null },
  recent: 0,
  at: NOON,
}

const NEWS = plainCategory("news")
const QUIET = {
  enabled: true,
  start: "22:00",
  end: "08:00",
  timezone: null,
  channels: ["email" as const, "push" as const],
}

const person = (change: Partial<DecidedSubscriber>): Partial<DecisionInput> => ({
  subscriber: { ...PERSON, ...change },
})

const project = (change: Partial<DecisionInput["project"]>): Partial<DecisionInput> => ({
  project: { ...PLAIN.project, ...change },
})

/** The row, and the reason or `yes`. */
function decided(...changes: Partial<DecisionInput>[]): string {
  const { row, is_allowed, reason } = decide(Object.assign({}, PLAIN, ...changes))
  expect(is_allowed).toBe(reason === null || reason === "quiet_hours")
  return `${row} ${reason ?? "yes"}`
}

test.each<[string, string, Partial<DecisionInput>[]]>([
  ["a blocked subscriber gets nothing", "1 blocked", [person({ status: "blocked" })]],
  [
    "a blocked subscriber gets nothing critical, either",
    "1 blocked",
    [person({ status: "blocked" }), { category: { ...NEWS, critical: true } }],
  ],
  ["a suppressed address gets nothing", "2 suppressed", [{ is_suppressed: true }]],
  [
    "a suppressed raw address gets nothing",
    "2 suppressed",
    [{ subscriber: null, is_suppressed: true }],
  ],
  [
    "a raw address is asked for nothing else",
    "9 yes",
    [{ subscriber: null, at: NIGHT }, project({ quiet_hours: QUIET })],
  ],
  [
    "a category without the channel is not sent there, critical or not",
    "3 category_channels",
    [{ category: { ...NEWS, critical: true, channels: ["push"] } }],
  ],
  [
    "a critical category reaches an unsubscribed subscriber in the night",
    "4 yes",
    [
      person({ status: "unsubscribed" }),
      { category: { ...NEWS, critical: true }, at: NIGHT, recent: 9 },
      project({ quiet_hours: QUIET, frequency_cap: { count: 1, per_seconds: 60 } }),
    ],
  ],
  [
    "a critical workflow does so, too",
    "4 yes",
    [person({ status: "unsubscribed" }), { workflow: { key: "w", is_critical: true } }],
  ],
  [
    "a publish that ignores preferences does so, too",
    "4 yes",
    [person({ status: "unsubscribed" }), { ignores_preferences: true }],
  ],
  [
    "a publish that ignores preferences spares a suppressed address",
    "2 suppressed",
    [{ is_suppressed: true, ignores_preferences: true }],
  ],
  [
    "an unsubscribed subscriber gets nothing else",
    "5 unsubscribed",
    [person({ status: "unsubscribed" })],
  ],
  [
    "an unsubscribe of the channel counts for every category",
    "5 unsubscribed",
    [person({ unsubscribes: [{ channel: "email", category: "" }] }), { category: NEWS }],
  ],
  [
    "an unsubscribe of a category counts for it",
    "5 unsubscribed",
    [person({ unsubscribes: [{ channel: "email", category: "news" }] }), { category: NEWS }],
  ],
  [
    "an unsubscribe of another category or channel does not",
    "9 yes",
    [
      person({
        unsubscribes: [
          { channel: "email", category: "offers" },
          { channel: "push", category: "" },
        ],
      }),
      { category: NEWS },
    ],
  ],
  [
    "a channel that was switched off",
    "6 channel_disabled",
    [
      person({ preferences: { email: { enabled: false, categories: { news: true } } } }),
      { category: NEWS },
    ],
  ],
  [
    "a workflow's entry comes before that of the topic",
    "7 yes",
    [
      person({ preferences: { workflows: { w: true }, topics: { t: { email: false } } } }),
      { workflow: { key: "w", is_critical: false }, topic: { key: "t", default: "on" } },
    ],
  ],
  [
    "a topic's entry comes before that of the category",
    "7 preference",
    [
      person({
        preferences: { email: { categories: { news: true } }, topics: { t: { email: false } } },
      }),
      { category: NEWS, topic: { key: "t", default: "on" } },
    ],
  ],
  [
    "a topic's entry for another channel says nothing",
    "9 yes",
    [
      person({ preferences: { topics: { t: { push: false } } } }),
      { topic: { key: "t", default: "on" } },
    ],
  ],
  [
    "a topic that is off wants a yes of its own",
    "8 default",
    [
      person({ preferences: { email: { categories: { news: true } } } }),
      { category: NEWS, topic: { key: "t", default: "off" } },
    ],
  ],
  [
    "a topic that is off reaches a subscriber who opted in",
    "7 yes",
    [
      person({ preferences: { topics: { t: { email: true } } } }),
      { topic: { key: "t", default: "off" } },
    ],
  ],
  [
    "the project's entry counts where the subscriber has none",
    "8 default",
    [
      project({ default_preferences: { email: { categories: { news: false } } } }),
      { category: NEWS },
    ],
  ],
  [
    "the project's yes is stronger than the default of the category",
    "8 yes",
    [
      project({ default_preferences: { email: { categories: { news: true } } } }),
      { category: { ...NEWS, default: "off" } },
    ],
  ],
  [
    "a channel that the project has off",
    "8 default",
    [project({ default_preferences: { email: { enabled: false } } })],
  ],
  [
    "a channel that the project has on says nothing about a category that is off",
    "8 default",
    [
      project({ default_preferences: { email: { enabled: true } } }),
      { category: { ...NEWS, default: "off" } },
    ],
  ],
  ["everything else goes out", "9 yes", []],
  [
    "a name that every object has is no entry",
    "9 yes",
    [
      person({ preferences: { workflows: {}, topics: {} } }),
      {
        workflow: { key: "constructor", is_critical: false },
        topic: { key: "constructor", default: "on" },
      },
    ],
  ],
  [
    "a cap that is reached",
    "10 frequency_cap",
    [{ recent: 2 }, project({ frequency_cap: { count: 2, per_seconds: 60 } })],
  ],
  [
    "a cap that is not reached yet",
    "9 yes",
    [{ recent: 1 }, project({ frequency_cap: { count: 2, per_seconds: 60 } })],
  ],
  [
    "a raw address with a category is not capped",
    "9 yes",
    [
      { subscriber: null, category: NEWS, recent: 9 },
      project({ frequency_cap: { count: 2, per_seconds: 60 } }),
    ],
  ],
  [
    "codes and links are neither capped nor deferred",
    "9 yes",
    [
      { stream: "auth", recent: 9, at: NIGHT },
      project({ frequency_cap: { count: 2, per_seconds: 60 }, quiet_hours: QUIET }),
    ],
  ],
  [
    "a message in the night waits",
    "11 quiet_hours",
    [{ at: NIGHT }, project({ quiet_hours: QUIET })],
  ],
  ["a message by day does not", "9 yes", [project({ quiet_hours: QUIET })]],
  [
    "a channel that is not among the quiet ones does not wait",
    "9 yes",
    [{ at: NIGHT, channel: "sms" }, project({ quiet_hours: QUIET })],
  ],
  [
    "the inbox makes no noise",
    "9 yes",
    [{ at: NIGHT, channel: "in_app" }, project({ quiet_hours: QUIET })],
  ],
  [
    "a subscriber's quiet hours that are off replace those of the project",
    "9 yes",
    [
      { at: NIGHT },
      person({ preferences: { quiet_hours: { ...QUIET, enabled: false } } }),
      project({ quiet_hours: QUIET }),
    ],
  ],
  [
    "a subscriber's null leaves those of the project",
    "11 quiet_hours",
    [
      { at: NIGHT },
      person({ preferences: { quiet_hours: null } }),
      project({ quiet_hours: QUIET }),
    ],
  ],
  [
    "a raw address with a category waits in the zone of the project",
    "11 quiet_hours",
    [
      { subscriber: null, category: NEWS, at: NOON },
      project({ quiet_hours: QUIET, timezone: "Pacific/Auckland" }),
    ],
  ],
])("%s", (_, expected, changes) => {
  expect(decided(...changes)).toBe(expected)
})

test.each([
  ["of the quiet hours", "Asia/Kathmandu", "America/New_York", "2026-11-23T02:15:00.000Z"],
  ["of the subscriber", null, "America/New_York", "2026-11-23T13:00:00.000Z"],
  ["of the project", null, null, "2026-11-23T07:00:00.000Z"],
])("the quiet hours are those in the zone %s", (_, own, subscribers, ends) => {
  const at = Date.parse(own ? "2026-11-22T20:00:00Z" : "2026-11-23T04:00:00Z")
  const decision = decide({
    ...PLAIN,
    ...person({ timezone: subscribers }),
    ...project({ quiet_hours: { ...QUIET, timezone: own }, timezone: "Europe/Berlin" }),
    at,
  })
  expect(decision).toEqual({
    row: 11,
    is_allowed: true,
    reason: "quiet_hours",
    deferred_until: ends,
  })
})
