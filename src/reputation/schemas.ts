import { Type as t } from "@sinclair/typebox"
import { count, flag, id, maybe, rarely, text, time, word } from "../lib/record-fields"

const share = (example: number, description?: string) =>
  t.Number({ examples: [example], ...(description !== undefined && { description }) })

const rates = {
  bounce_rate: share(0.012, "Share of permanent bounces, 0 to 1."),
  complaint_rate: share(0.0004, "Share of complaints, 0 to 1."),
}

const counts = {
  sent: count(4200, "Emails by recipient, in the hour in which they were sent."),
  delivered: count(4150),
  bounced: count(50, "Permanent bounces, without refusals of this server or of its provider."),
  complained: count(2),
}

const status = word(["active", "throttled", "frozen"])

const step = { min_sent: count(200), ...rates }

const Thresholds = t.Object(
  {
    throttled: t.Object({
      ...step,
      hour_sent: count(1000, "Emails of one hour above which a sudden rise throttles."),
      hour_factor: count(5, "How many times the usual hour it must be."),
      least_share: share(0.25, "Share of sends that is rejected at the threshold."),
      most_share: share(
        0.9,
        "Share of sends that is rejected just below the threshold of freezing.",
      ),
    }),
    frozen: t.Object(step),
    held: t.Object({ min_sent: count(50), complaint_rate: share(0.005) }),
    recovery: t.Object({
      below_share: share(0.8, "Share of a threshold below which a rate is low."),
      after_hours: share(6, "How long all rates must be low."),
    }),
  },
  { title: "ReputationThresholds", description: "The settings `reputation.*` of the operator." },
)

const named = { project_id: id(), ...counts, ...rates }

const Forecast = t.Object(
  {
    status: rarely(status),
    expected_at: rarely(time("The first hour in which that status holds.")),
    ...rates,
    bounces_left: maybe(count(168, "How many more bounces the next worse status takes.")),
    complaints_left: maybe(count(3, "How many more complaints the next worse status takes.")),
  },
  {
    title: "ReputationForecast",
    description: "The next status within 7 days, if the account sends as in the last 24 hours.",
  },
)

const Held = t.Object(
  {
    tag: maybe(text("newsletter")),
    template_id: rarely(id()),
    project_id: id(),
    complaint_rate: share(0.008),
    held_at: time(),
    waiting: count(120, "Messages that wait for the release."),
  },
  { title: "HeldMail" },
)

const Warning = t.Object(
  { next: word(["throttled", "frozen"]), reason: text("bounce_rate=4.4%;threshold=5%;window=7d") },
  { title: "ReputationWarning" },
)

export const Reputation = t.Object(
  {
    status,
    reason: rarely(text("bounce_rate=6.1%;threshold=5%;window=7d")),
    changed_at: rarely(time("When the status last changed.")),
    rejected_share: share(0, "Share of new sends that is rejected, 0 to 1."),
    low_since: rarely(time("Since when the rates of a throttled account are low.")),
    enforced: flag(true, "Whether bad rates throttle, freeze and hold anything here."),
    would_be: rarely(
      word(
        ["active", "throttled", "frozen"],
        "The status that the rates would cause if `enforced` were true; null where it is.",
      ),
    ),
    window_days: t.Number({ examples: [7] }),
    window_start: rarely(time("Where the window begins because the operator lifted a freeze.")),
    ...counts,
    ...rates,
    hour_sent: count(120, "Emails sent in the present hour."),
    usual_hour: rarely(count(300, "The busiest hour that is older than a day.")),
    thresholds: Thresholds,
    warning: rarely(Warning),
    forecast: Forecast,
    held: t.Array(Held, { examples: [[]] }),
    by_domain: t.Array(t.Object({ domain: text("example.com"), ...named })),
    by_tag: t.Array(t.Object({ tag: text("newsletter"), ...named })),
    by_template: t.Array(t.Object({ template_id: id(), ...named }), { examples: [[]] }),
    history: t.Array(t.Object({ date: t.String({ format: "date" }), sent: count(600), ...rates }), {
      description: "One entry for each of the last 30 days, oldest first.",
    }),
  },
  { title: "Reputation" },
)

export const Released = t.Object(
  { released: count(120, "Messages that waited and are queued again.") },
  { title: "ReleasedMail" },
)
