import { isSecret, signedHeaders } from "../../src/lib/signature"
import { shortened } from "../lib/cells"
import type { Action, Context } from "../lib/context"
import { exits, usage } from "../lib/errors"
import { onInterrupt } from "../lib/interrupt"
import { write } from "../lib/output"
import { type PostResult, post, RECEIVER_MILLISECONDS } from "../lib/post"
import { originOf } from "../lib/profiles"
import { cleanLine, type Paint } from "../lib/terminal"
import { millis, pause } from "../lib/time"
import { listenSecret, receiverAddress } from "./listen-secret"

const TRIAL_FIELDS = [
  ...["name", "about", "expected", "passed"],
  ...["response_status", "duration_ms", "error", "note"],
]

type Trial = ReturnType<typeof trialOf>

/** Scores a receiver: 0 when it did everything right, 8 when some, 1 when nothing. */
export const verify: Action<{ secret?: string; skipVerify?: boolean }> = async (
  context,
  { secret, skipVerify: skip_verify },
  to = "",
) => {
  const { output, paint, terminal } = context
  const url = receiverAddress(to)
  output.promises(TRIAL_FIELDS)
  const known = secret ?? listenSecret(context)
  if (!isSecret(known))
    throw usage("--secret is not a webhook secret", "a webhook secret begins with whsec_")
  if (secret === undefined) await warnOfEndpoint(context, url)
  const source = secret === undefined ? `belfry listen for ${context.connection().url}` : "--secret"
  const shown = `${known.slice(0, SHOWN_CHARACTERS)}…`
  await write(process.stderr, `signed with the secret ${shown} of ${source}\n`)
  onInterrupt(() => {
    output.passing("")
    process.exit(exits.interrupted)
  })
  if (output.form === "human") await output.raw(`${paint.dim(lineOf(" ", HEAD, "ANSWER"))}\n`)
  const sample = sampleOf(known)
  const done: Trial[] = []
  for (const plan of PLANS) {
    const posted = post({ url, skip_verify, ...plan.send(sample) })
    const result = await watched(posted, (seconds) => {
      const waited = `… ${seconds} of ${RECEIVER_MILLISECONDS / 1000} s`
      output.passing(paint.dim(shortened(lineOf("·", plan, waited), terminal.width)))
    })
    const trial = trialOf(plan, result)
    done.push(trial)
    output.passing("")
    // One JSON text can only be whole at its end.
    if (output.form !== "json") await output.line(trial, () => trialLine(trial, paint))
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

/** Enough to compare with a secret at hand. */
const SHOWN_CHARACTERS = 12

const PATIENCE_MILLISECONDS = 2000

/** The server signs with the secret of the endpoint itself, where the receiver is one. */
async function warnOfEndpoint(context: Context, url: string): Promise<void> {
  const query = { per_page: 100 }
  const client = context.client(PATIENCE_MILLISECONDS)
  const { data } = await client.call("GET /v1/webhooks", { query }).catch(() => ({ data: [] }))
  const found = data.find((one) => one.url && addressOf(one.url) === addressOf(url))
  if (!found) return
  const lines = [
    `${context.paint.yellow("warning:")} ${found.url} is the endpoint ${found.id}, which has a secret of its own.`,
    "  If the receiver knows that one, give it with --secret whsec_…",
    `  Or let the server send an event that it signs: ${context.output.again(`belfry webhooks test ${found.id}`)}`,
  ]
  await write(process.stderr, `${lines.join("\n")}\n`)
}

/** With one name for all ways to write this machine. */
function addressOf(url: string): string {
  const { pathname, search } = new URL(url)
  return originOf(url) + pathname + search
}

const TICK_MILLISECONDS = 1000

/** Notes at once, and then every second, how long the answer has been waited for. */
async function watched(posted: Promise<PostResult>, note: (seconds: number) => void) {
  let seconds = 0
  note(seconds)
  const timer = setInterval(() => note(++seconds), TICK_MILLISECONDS)
  return await posted.finally(() => clearInterval(timer))
}

/** What the receiver did. */
function trialOf({ send: _, note, ...asked }: Plan, result: PostResult) {
  const { status: response_status, duration_ms, error } = result
  const passed = String(response_status)[0] === asked.expected[0]
  return { ...asked, passed, response_status, duration_ms, error, note: note ?? null }
}

/** A delivery, and what it asks of the receiver. */
interface Plan {
  name: string
  about: string
  expected: "2xx" | "4xx"
  note?: string
  send: (sample: Sample) => Pick<Parameters<typeof post>[0], "headers" | "body">
}

const OTHER_SECRET = `whsec_${Buffer.alloc(32, 7).toString("base64")}`

/** More than the five minutes that receivers are to allow. */
const STALE_SECONDS = 600

const plan = (
  name: string,
  about: string,
  expected: Plan["expected"],
  send: Plan["send"],
): Plan => {
  return { name, about, expected, send }
}

/** In this order: the duplicate repeats the good one. */
const PLANS: Plan[] = [
  plan("good", "valid signature", "2xx", (sample) => signed(sample)),
  plan("tampered", "body changed after signing", "4xx", (sample) => {
    const { headers, body } = signed(sample)
    return { headers, body: body.replace('"amount":1', '"amount":1000') }
  }),
  plan("forged", "signed with another secret", "4xx", (sample) =>
    signed({ ...sample, secret: OTHER_SECRET }),
  ),
  plan("unsigned", "no signature", "4xx", ({ body }) => ({ headers: CONTENT, body })),
  plan("stale", "valid, but ten minutes old", "4xx", (sample) => signed(sample, STALE_SECONDS)),
  {
    ...plan("duplicate", "same event and id again", "2xx", (sample) => signed(sample)),
    note: "this test cannot see if the receiver acted twice; it must act once",
  },
  plan("slow", "valid, body takes two seconds", "2xx", ({ secret }) => {
    const { headers, body } = signed(sampleOf(secret))
    return { headers, body: dripping(body) }
  }),
]

type Sample = ReturnType<typeof sampleOf>

function sampleOf(secret: string) {
  const id = `evt_${Bun.randomUUIDv7()}`
  const data = { message: "A test of `belfry webhooks verify`.", simulated: true, amount: 1 }
  const created_at = new Date(millis()).toISOString()
  const event = { id, type: "webhook.test", api_version: "2026-02-01", created_at, data }
  return { id, secret, body: JSON.stringify(event) }
}

const CONTENT = { "content-type": "application/json", "user-agent": "belfry-webhooks/1" }

function signed({ id, secret, body }: Sample, seconds_ago = 0) {
  const timestamp = Math.floor(millis() / 1000) - seconds_ago
  const proof = signedHeaders({ id, timestamp, body, secrets: [secret], format: "both" })
  return { headers: { ...CONTENT, ...proof }, body }
}

const DRIPS = 8
const DRIP_MILLISECONDS = 250

async function* dripping(body: string): AsyncGenerator<Uint8Array> {
  const bytes = new TextEncoder().encode(body)
  const step = Math.ceil(bytes.length / DRIPS)
  for (let at = 0; at < bytes.length; at += step) {
    if (at > 0) await pause(DRIP_MILLISECONDS)
    yield bytes.subarray(at, at + step)
  }
}

const HEAD = { name: "DELIVERY", about: "WHAT", expected: "EXPECTED" }

const lineOf = (mark: string, { name, about, expected }: typeof HEAD, answer: string): string =>
  `${mark}  ${name.padEnd(9)}  ${about.padEnd(32)}  ${expected} → ${answer}`

/** `✓  tampered   body changed after signing    4xx → 401  3 ms`. */
function trialLine(trial: Trial, paint: Paint): string {
  const { passed, response_status, error, duration_ms } = trial
  const answer = cleanLine(String(response_status ?? error))
  const mark = passed ? paint.green("✓") : paint.red("✗")
  return `${lineOf(mark, trial, passed ? answer : paint.red(answer))}  ${duration_ms} ms`
}
