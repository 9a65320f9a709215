import { Type as t } from "@sinclair/typebox"
import { count, flag, id, maybe, rarely, text, time, word } from "../lib/record-fields"

const choice = (what: string) =>
  t.Optional(
    t.Union([t.Boolean(), t.Null()], {
      description: `${what} Default: the setting of the project, else of the account.`,
    }),
  )

/** What a send says of its tracking. */
export const trackingChoice = {
  track_opens: choice("Whether html gets the picture that reports openings."),
  track_clicks: choice("Whether links of the html report clicks."),
}

/** What the record of an email tells of its hits. */
export const hitSummary = {
  track_opens: flag(true),
  track_clicks: flag(true),
  open_count: count(0, "Openings by people."),
  click_count: count(0, "Clicks by people."),
  opened_at: rarely(time("The first opening by a person.")),
  last_opened_at: rarely(time("The last opening by a person.")),
  clicked_at: rarely(time("The first click by a person.")),
}

const hitCounts = {
  total: count(3, "All hits, those of machines included."),
  unique: count(1, "Different people."),
  human: count(2, "Hits of people."),
}

const Hits = t.Object(
  {
    ...hitCounts,
    machine: count(1, "Hits of proxies, scanners and prefetching programs."),
    first_at: maybe(time()),
    last_at: maybe(time()),
  },
  { title: "EmailHits" },
)

export const EmailTracking = t.Object(
  {
    email_id: id(),
    track_opens: flag(true),
    track_clicks: flag(true),
    opens: Hits,
    clicks: Hits,
    links: t.Array(
      t.Object({ url: text("https://example.com/orders/1042"), ...hitCounts, last_at: time() }),
      { description: "Links that were followed, the most followed first; at most 200." },
    ),
    recent: t.Array(
      t.Object({
        type: word(["open", "click"]),
        timestamp: time(),
        url: maybe(text("https://example.com/orders/1042")),
        actor: word(["human", "machine", "unknown"]),
        client: maybe(text("Thunderbird")),
        os: maybe(text("Linux")),
        device: maybe(word(["desktop", "mobile", "tablet"])),
      }),
      { description: "The newest hits first; at most 50." },
    ),
  },
  { title: "EmailTracking" },
)
