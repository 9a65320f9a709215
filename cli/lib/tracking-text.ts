import type { Components } from "../../src/client/components"
import { fields } from "./table"
import { cleanLine, type Paint } from "./terminal"
import { clockTime } from "./time"

type Tracking = Components["EmailTracking"]

/** The statistics of one email: openings, clicks, links, and the newest hits. */
export function trackingText(tracking: Tracking, paint: Paint): string {
  const { email_id, track_opens, track_clicks, opens, clicks, links, recent } = tracking
  const head = fields(
    [
      ["id", email_id],
      ["openings", track_opens ? counts(opens) : "not tracked"],
      ["clicks", track_clicks ? counts(clicks) : "not tracked"],
    ],
    paint,
  )
  const followed = links.map(
    ({ url, human, total }) => `${String(human).padStart(6)} of ${total}  ${cleanLine(url)}`,
  )
  const hits = recent.map((hit) => hitText(hit, paint))
  return [head, ...section("links", followed, paint), ...section("newest", hits, paint)].join("\n")
}

/** The number of people first: the others are proxies and scanners. */
const counts = ({ human, unique, machine, total }: Tracking["opens"]): string =>
  `${human} by ${unique} ${unique === 1 ? "person" : "people"}, ${machine} by machines, ${total} in all`

const section = (title: string, lines: string[], paint: Paint): string[] =>
  lines.length === 0 ? [] : ["", paint.dim(title), ...lines]

function hitText(hit: Tracking["recent"][number], paint: Paint): string {
  const { type, timestamp, actor, client, os, device, url } = hit
  const program = [client, os, device].filter(Boolean).join(", ")
  const words = [type.padEnd(5), actor.padEnd(7), program, cleanLine(url ?? "")]
  return `${paint.dim(clockTime(timestamp))} ${words.join(" ").trimEnd()}`
}
