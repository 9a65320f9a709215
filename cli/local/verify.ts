import { isSecret, signedHeaders } from "../../src/lib/signature"
import { shortened } from "../lib/cells"
import type { Action } from "../lib/context"
import { exits, usage } from "../lib/errors"
import { onInterrupt } from "../lib/interrupt"
import { listenSecret, receiverAddress } from "../lib/listen-secret"
import { type PostResult, post, RECEIVER_MILLISECONDS } from "../lib/post"
import { cleanLine, type Paint } from "../lib/terminal"
import { millis, pause } from "../lib/time"

interface VerifyOptions {
  secret?: string
  skipVerify?: boolean
}

/** What a delivery asks of the receiver. */
type TrialSpec = {
  name: string
  about: string
  expected: "2xx" | "4xx"
}

/** And what the receiver did. */
type Trial = TrialSpec & {
  passed: boolean
  response_status: number | null
  duration_ms: number
  error: string | null
  note: string | null
}

const TRIAL_FIELDS = [
  ...["name", "about", "expected", "passed"],
  ...["response_status", "duration_ms", "error", "note"],
]

/** Scores a receiver: 0 when it did everything right, 8 when some, 1 when nothing. */
export const verify: Action<VerifyOptions> = async (context, { secret, skipVerify }, to = "") => {
  const { output, paint, terminal } = context
  const url = receiverAddress(to)
  output.promises(TRIAL_FIELDS)
  const known = secret ?? listenSecret(context)
  if (!isSecret(known))
    throw usage("--secret is not a webhook secret", "a webhook secret begins with whsec_")
  onInterrupt(() => {
    output.passing("")
    process.exit(exits.interrupted)
  })
  const paper = { paint, width: terminal.width }
  if (output.form === "human") await output.raw(`${headLine(paper)}\n`)
  const sample = new Sample(known)
  const done: Trial[] = []
  for (const { send, note = null, ...asked } of PLANS) {
    const posted = post({ url, skip_verify: skipVerify, ...send(sample) })
    const tell = (ms: number) => output.passing(waitingLine(asked, ms, paper))
    const { status, duration_ms, error } = await watched(posted, tell)
    const passed = status !== null && Math.floor(status / 100) === Number(asked.expected[0])
    const trial = { ...asked, passed, response_status: status, duration_ms, error, note }
    done.push(trial)
    output.passing("")
    // One JSON text can only be whole at its end.
    if (output.form !== "json") await output.line(trial, () => trialLine(trial, paper))
  }
  if (output.form === "json") await output.list(done, {})

  const right = done.filter(({ passed }) => passed)
  for (const { name, note } of right) {
    if (note !== null) await output.note(paint.dim(`${name}: ${note}`))
  }
  await output.note(`${right.length} of ${done.length} answers are right`)
  if (right.length === done.length) return exits.done
  return right.length === 0 ? exits.failed : exits.partly_failed
}

const TICK_MILLISECONDS = 1000

/** Tells at once, and then every second, how long the answer has been waited for. */
async function watched(posted: Promise<PostResult>, tell: (ms: number) => void) {
  const since = millis()
  tell(0)
  const timer = setInterval(() => tell(millis() - since), TICK_MILLISECONDS)
  try {
    return await posted
  } finally {
    clearInterval(timer)
  }
}

interface Plan extends TrialSpec {
  note?: string
  send: (sample: Sample) => {
    headers: Record<string, string>
    body: string | ReadableStream<Uint8Array>
  }
}

const CONTENT = { "content-type": "application/json", "user-agent": "belfry-webhooks/1" }

/** A wrong secret. */
const OTHER_SECRET = `whsec_${Buffer.alloc(32, 7).toString("base64")}`

/** More than the five minutes that receivers are to allow. */
const STALE_SECONDS = 600

/** In this order: the duplicate repeats the good one. */
const PLANS: Plan[] = [
  {
    name: "good",
    about: "valid signature",
    expected: "2xx",
    send: (sample) => sample.signed(),
  },
  {
    name: "tampered",
    about: "body changed after signing",
    expected: "4xx",
    send: (sample) => {
      const { headers } = sample.signed()
      return { headers, body: sample.body.replace('"amount":1', '"amount":1000') }
    },
  },
  {
    name: "forged",
    about: "signed with another secret",
    expected: "4xx",
    send: (sample) => sample.signed({ secret: OTHER_SECRET }),
  },
  {
    name: "unsigned",
    about: "no signature",
    expected: "4xx",
    send: ({ body }) => ({ headers: CONTENT, body }),
  },
  {
    name: "stale",
    about: "valid, but ten minutes old",
    expected: "4xx",
    send: (sample) => sample.signed({ seconds_ago: STALE_SECONDS }),
  },
  {
    name: "duplicate",
    about: "same event and id again",
    expected: "2xx",
    note: "this test cannot see if the receiver acted twice; it must act once",
    send: (sample) => sample.signed(),
  },
  {
    name: "slow",
    about: "valid, body takes two seconds",
    expected: "2xx",
    send: (sample) => {
      const { headers, body } = new Sample(sample.secret).signed()
      return { headers, body: dripping(body) }
    },
  },
]

/** One event, as it is delivered. */
class Sample {
  readonly id = `evt_${Bun.randomUUIDv7()}`
  readonly body: string
  readonly secret: string

  constructor(secret: string) {
    this.secret = secret
    this.body = JSON.stringify({
      id: this.id,
      type: "webhook.test",
      api_version: "2026-02-01",
      created_at: new Date(millis()).toISOString(),
      data: { message: "A test of `belfry webhooks verify`.", simulated: true, amount: 1 },
    })
  }

  signed({ secret = this.secret, seconds_ago = 0 } = {}) {
    const { id, body } = this
    const timestamp = Math.floor(millis() / 1000) - seconds_ago
    const signed = signedHeaders({ id, timestamp, body, secrets: [secret], format: "both" })
    return { headers: { ...CONTENT, ...signed }, body }
  }
}

const DRIPS = 8
const DRIP_MILLISECONDS = 250

function dripping(body: string): ReadableStream<Uint8Array> {
  const bytes = new TextEncoder().encode(body)
  const step = Math.ceil(bytes.length / DRIPS)
  let at = 0
  return new ReadableStream({
    async pull(controller) {
      if (at > 0) await pause(DRIP_MILLISECONDS)
      controller.enqueue(bytes.slice(at, at + step))
      at += step
      if (at >= bytes.length) controller.close()
    },
  })
}

const NAME_WIDTH = 9
const ABOUT_WIDTH = 32
const GAP = "  "

/** Where the lines are printed. */
interface Paper {
  width: number
  paint: Paint
}

/** Over the lines, which come one by one: the widths are known before any answer is. */
const headLine = ({ paint }: Paper): string =>
  paint.dim(
    `   ${"DELIVERY".padEnd(NAME_WIDTH)}${GAP}${"WHAT".padEnd(ABOUT_WIDTH)}${GAP}EXPECTED → ANSWER`,
  )

/** `✓  tampered   body changed after signing    4xx → 401  3 ms`. */
function trialLine(trial: Trial, paper: Paper): string {
  const { passed, response_status, error, duration_ms } = trial
  const { paint } = paper
  const answer = cleanLine(String(response_status ?? error))
  const mark = passed ? paint.green("✓") : paint.red("✗")
  const painted = passed ? answer : paint.red(answer)
  return `${mark}${onBegin(trial, paper, `${answer}  ${duration_ms} ms`)}${painted}${GAP}${duration_ms} ms`
}

/** The same of a delivery that is not answered yet, and how long it has been waited for. */
function waitingLine(asked: TrialSpec, milliseconds: number, paper: Paper): string {
  const seconds = Math.floor(milliseconds / 1000)
  const rest = `… ${seconds} of ${RECEIVER_MILLISECONDS / 1000} s`
  return paper.paint.dim(`·${onBegin(asked, paper, rest)}${rest}`)
}

/** Up to the answer; what it is about gives way to a long one. */
function onBegin({ name, about, expected }: TrialSpec, { width }: Paper, rest: string): string {
  const fixed = 1 + GAP.length + NAME_WIDTH + 2 * GAP.length + `${expected} → `.length
  const room = Math.max(0, Math.min(ABOUT_WIDTH, width - fixed - Bun.stringWidth(rest)))
  const what = shortened(about, room).padEnd(room)
  return `${GAP}${name.padEnd(NAME_WIDTH)}${GAP}${what}${GAP}${expected} → `
}
