import type { Components } from "../../src/client/components"
import { cleanLine, cleanText } from "../lib/terminal"
import { clockTime } from "../lib/time"
import { type Brush, pair, type Told, told } from "./columns"
import { painted } from "./detail-lines"
import { remembered } from "./remembered"
import { spanText } from "./spans"
import type { DeliveryView } from "./state"

type DeliveryDetail = Components["DeliveryDetail"]
type HeaderFields = Components["DeliveryDetail"]["request_headers"]

const brushes: Partial<Record<string, Brush>> = {
  success: "green",
  exhausted: "red",
  failed: "red",
  held: "cyan",
}

export const deliveryBrush = (status: string): Brush => brushes[status] ?? "yellow"

export const deliveryWord = (status: string): string =>
  status === "failed" || status === "exhausted" ? `${status} ✗` : status

/** What was sent, what came back, how long it took, and when it is tried again. */
export const deliveryLines = ({ found, problem }: DeliveryView, width: number, colour: boolean) =>
  linesOf(found, problem, width, colour)

const linesOf = remembered(
  (found: DeliveryDetail | null, problem: string | null, width: number, colour: boolean) => {
    if (problem !== null) return painted([told(cleanLine(problem), "yellow")], width, colour)
    const lines = found ? [...headLines(found), ...bodies(found)] : [told("loading…", "dim")]
    return painted(lines, width, colour)
  },
)

function headLines(delivery: DeliveryDetail): Told[] {
  const { status, attempts, max_attempts, next_attempt_at, attempt_log } = delivery
  return [
    told(deliveryWord(cleanLine(status)), deliveryBrush(status)),
    ...pair("event", `${delivery.event_type}  ${delivery.event_id}`),
    ...pair("to", delivery.url),
    ...pair("trigger", delivery.trigger),
    ...pair("attempts", `${attempts} of ${max_attempts}`),
    ...pair(status === "held" ? "held until" : "next try", next_attempt_at),
    ...pair("error", delivery.last_error),
    ...(attempt_log?.length ? [told("")] : []),
    ...(attempt_log ?? []).map(({ attempt, at, response_status, error, latency_ms }) => {
      const took = latency_ms === null ? "" : spanText(latency_ms)
      const answer = [response_status, error].filter(Boolean).join(" ")
      return told(cleanLine(`try ${attempt}  ${clockTime(at)}  ${took.padEnd(6)}  ${answer}`))
    }),
  ]
}

function bodies(delivery: DeliveryDetail): Told[] {
  const { payload, request_headers, response_headers, last_response_body } = delivery
  const status = delivery.last_response_status ?? "none yet"
  return [
    told(""),
    told("REQUEST", "bold"),
    ...headerLines(request_headers),
    told(""),
    ...text(typeof payload === "string" ? payload : JSON.stringify(payload, null, 2)),
    told(""),
    told(`RESPONSE ${status}`, "bold"),
    ...headerLines(response_headers),
    told(""),
    ...text(last_response_body ?? ""),
  ]
}

const headerLines = (headers: HeaderFields): Told[] =>
  Object.entries(headers ?? {}).map(([name, value]) => told(cleanLine(`${name}: ${value}`), "dim"))

const text = (found: string): Told[] =>
  cleanText(found)
    .split("\n")
    .map((line) => told(line))
