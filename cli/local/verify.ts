import { isSecret, signedHeaders } from "../../src/lib/signature"
import type { Action, Context } from "../lib/context"
import { type Exit, exits, usage } from "../lib/errors"
import { onInterrupt } from "../lib/interrupt"
import { listenSecret, receiverAddress } from "../lib/listen-secret"
import { type PostResult, post } from "../lib/post"
import { shortened } from "../lib/table"
import { cleanLine, type Paint } from "../lib/terminal"
import { millis, pause } from "../lib/time"

const TRIAL_FIELDS = [
  ...["name", "about", "expected", "passed"],
  ...["response_status", "duration_ms", "error", "note"],
]

interface VerifyOptions {
  secret?: string
  skipVerify?: boolean
}

/** Scores a receiver: 0 when it did everything right, 8 when some, 1 when nothing. */
export const verify: Action<VerifyOptions> = async (context, { secret, skipVerify }, to = "") => {
  const { output, paint } = context
  const url = receiverAddress(to)
  output.promises(TRIAL_FIELDS)
  const known = secret ?? listenSecret(context)
  if (!isSecret(known))
    throw usage("--secret is not a webhook secret", "a webhook secret begins with whsec_")
  const done = await tried(context, url, known, skipVerify)
  // One JSON text can only be whole at its end.
  if (output.form === "json") await output.list(done, {})

  const passed = done.filter((trial) => trial.passed).length
  const notes = done.filter((trial) => trial.passed && trial.note !== null)
  for (const { name, note } of notes) await output.note(paint.dim(`${name}: ${note}`))
  await output.note(`${passed} of ${done.length} answers are right`)
  return exitOf(passed, done.length)
}

function exitOf(passed: number, count: number): Exit {
  if (passed === count) return exits.done
  return passed === 0 ? exits.failed : exits.partly_failed
}

/** Each line as soon as it is known; until then, for people, how long it is waited for. */
async function tried(
  context: Context,
  url: string,
  secret: string,
  skip_verify: boolean | undefined,
): Promise<Trial[]> {
  const { output, paint, terminal } = context
  const paper = { paint, width: terminal.width }
  const waiting = new WaitingNotice((asked, since) =>
    output.passing(waitingLine(asked, millis() - since, paper)),
  )
  onInterrupt(() => {
    waiting.end()
    output.passing("")
    process.exit(exits.interrupted)
  })
  if (output.form === "human") await output.raw(`${headLine(paper)}\n`)
  const done: Trial[] = []
  try {
    for await (const trial of trials({ url, secret, skip_verify, lineStart: waiting.begin })) {
      waiting.end()
      done.push(trial)
      output.passing("")
      if (output.form !== "json") await output.line(trial, () => trialLine(trial, paper))
    }
  } finally {
    waiting.end()
    output.passing("")
  }
  return done
}

const TICK_MILLISECONDS = 1000

/** Tells once at the beginning, and then every second, what is waited for. */
class WaitingNotice {
  readonly #tell: (asked: TrialSpec, since: number) => void
  #timer: Timer | undefined

  constructor(tell: (asked: TrialSpec, since: number) => void) {
    this.#tell = tell
  }

  readonly begin = (asked: TrialSpec): void => {
    const since = millis()
    this.#tell(asked, since)
    this.#timer = setInterval(() => this.#tell(asked, since), TICK_MILLISECONDS)
  }

  end(): void {
    clearInterval(this.#timer)
  }
}

/** The time limit of one delivery, as in production. */
export const RECEIVER_MILLISECONDS = 30_000

/** More than the five minutes that receivers are to allow. */
const STALE_SECONDS = 600
const DRIPS = 8
const DRIP_MILLISECONDS = 250

const CONTENT = { "content-type": "application/json", "user-agent": "belfry-webhooks/1" }

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

interface Sent {
  headers: Record<string, string>
  body: string | ReadableStream<Uint8Array>
}

interface Plan extends TrialSpec {
  note?: string
  send: (sample: Sample) => Sent
}

const UNSEEN = "this test cannot see if the receiver acted twice; it must act once"

/** In this order: the duplicate repeats the good one. */
const PLANS: Plan[] = [
  {
    name: "good",
    about: "valid signature",
    expected: "2xx",
    send: (sample) => sample.signed({}),
  },
  {
    name: "tampered",
    about: "body changed after signing",
    expected: "4xx",
    send: (sample) => {
      const { headers } = sample.signed({})
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
    note: UNSEEN,
    send: (sample) => sample.signed({}),
  },
  {
    name: "slow",
    about: "valid, body takes two seconds",
    expected: "2xx",
    send: (sample) => {
      const { headers, body } = sample.another().signed({})
      return { headers, body: dripping(body) }
    },
  },
]

/** A wrong secret. */
const OTHER_SECRET = `whsec_${Buffer.alloc(32, 7).toString("base64")}`

class Sample {
  readonly id = `evt_${Bun.randomUUIDv7()}`
  readonly body: string
  readonly #secret: string

  constructor(secret: string) {
    this.#secret = secret
    this.body = JSON.stringify({
      id: this.id,
      type: "webhook.test",
      api_version: "2026-02-01",
      created_at: new Date(millis()).toISOString(),
      data: { message: "A test of `belfry webhooks verify`.", simulated: true, amount: 1 },
    })
  }

  another = () => new Sample(this.#secret)

  signed({ secret = this.#secret, seconds_ago = 0 }: { secret?: string; seconds_ago?: number }) {
    const { id, body } = this
    const timestamp = Math.floor(millis() / 1000) - seconds_ago
    const signed = signedHeaders({ id, timestamp, body, secrets: [secret], format: "both" })
    return { headers: { ...CONTENT, ...signed }, body }
  }
}

interface Receiver {
  url: string
  secret: string
  skip_verify: boolean | undefined
  /** Hears of each delivery before it leaves. */
  lineStart: (asked: TrialSpec) => void
}

/** Sends every delivery of the plan, one after the other. Throws for what is no secret. */
export async function* trials({
  url,
  secret,
  skip_verify,
  lineStart,
}: Receiver): AsyncGenerator<Trial> {
  if (!isSecret(secret)) throw new TypeError("not a secret")
  const sample = new Sample(secret)
  for (const { send, note, ...plan } of PLANS) {
    lineStart(plan)
    const request = { url, timeout: RECEIVER_MILLISECONDS, skip_verify, ...send(sample) }
    const { status, duration_ms, error } = await post(request)
    const passed = fits(plan.expected, status)
    yield { ...plan, passed, response_status: status, duration_ms, error, note: note ?? null }
  }
}

const fits = (expected: TrialSpec["expected"], status: PostResult["status"]) =>
  status !== null && Math.floor(status / 100) === Number(expected[0])

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
