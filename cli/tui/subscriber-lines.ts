import { cleanLine } from "../lib/terminal"
import { age, clockTime } from "../lib/time"
import { remembered } from "./cells"
import { painted } from "./details"
import type { SubscriberFacts, SubscriberView } from "./state"
import { pair, type StyledLine, statusBrush, statusWord, styled } from "./table-lines"

/** The data of a subscriber, its reachability and consents, and its last messages. */
export const subscriberLines = (
  { found, problem }: SubscriberView,
  width: number,
  colour: boolean,
): string[] => linesOfSubscriber(found, problem, width, colour)

const linesOfSubscriber = remembered(
  (found: SubscriberFacts | null, problem: string | null, width: number, colour: boolean) =>
    painted(problem, found && contentOf(found), width, colour),
)

function contentOf(found: SubscriberFacts): StyledLine[] {
  const { subscriber } = found
  return [
    ...pair("external", subscriber.external_id),
    ...pair("id", subscriber.id),
    ...pair("name", subscriber.name),
    ...pair("email", subscriber.email),
    ...pair("phone", subscriber.phone),
    ...pair("locale", subscriber.locale),
    ...pair("timezone", subscriber.timezone),
    ...pair("tags", subscriber.tags.join(" ")),
    ...section("REACHABILITY", found.reachability && reachLines(found.reachability)),
    ...section(
      "TOPICS",
      found.topics?.map(({ key }) => styled(`  ${cleanLine(key)}`)),
    ),
    ...section("CONSENTS", found.consents?.map(consentLine)),
    ...section("LAST MESSAGES", found.messages?.map(messageLine)),
  ]
}

function section(title: string, lines: StyledLine[] | undefined): StyledLine[] {
  const none = lines === undefined ? "this key may not read it" : "none"
  const shown = lines && lines.length > 0 ? lines : [styled(`  ${none}`, "dim")]
  return [styled(""), styled(title, "bold"), ...shown]
}

/** Each channel with its answer, and why and until when it is another one than a plain yes. */
function reachLines(reachability: NonNullable<SubscriberFacts["reachability"]>): StyledLine[] {
  return Object.entries(reachability).map(([channel, { allowed, reason, next_allowed_at }]) => {
    const why = reason === null ? "" : ` (${reason.replaceAll("_", " ")})`
    const later = next_allowed_at === null ? "" : ` at ${next_allowed_at} (${age(next_allowed_at)})`
    const word = allowed ? "yes" : "no ✗"
    return styled(`  ${channel.padEnd(8)} ${word}${why}${later}`, allowed ? "green" : "red")
  })
}

type ConsentRow = NonNullable<SubscriberFacts["consents"]>[number]

function consentLine({ channel, scope, action, source, created_at }: ConsentRow): StyledLine {
  const about = scope
    ? [channel, scope.type, scope.key].filter(Boolean).join(" ")
    : `all ${channel}`
  const text = `  ${created_at.slice(0, 10)}  ${action.padEnd(9)}  ${about}  by ${source}`
  return styled(cleanLine(text), action === "granted" ? "green" : "yellow")
}

type MessageSummary = NonNullable<SubscriberFacts["messages"]>[number]

function messageLine(message: MessageSummary): StyledLine {
  const { created_at, status, status_reason, subject } = message
  const why = status_reason ? ` (${status_reason})` : ""
  const at = `${created_at.slice(0, 10)} ${clockTime(created_at).slice(0, 8)}`
  const text = `  ${at}  ${statusWord(status)}${why}  ${subject}`
  return styled(cleanLine(text), statusBrush(status))
}
