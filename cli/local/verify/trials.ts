import { isSecret, signedHeaders } from "../../../src/lib/signature"
import { type Posted, post } from "../../post"
import { millis, pause } from "../../time"

/** So long a receiver may take over one delivery, as in earnest. */
export const RECEIVER_MILLISECONDS = 30_000

/** More than the five minutes that receivers are to allow. */
const STALE_SECONDS = 600
const DRIPS = 8
const DRIP_MILLISECONDS = 250

const CONTENT = { "content-type": "application/json", "user-agent": "belfry-webhooks/1" }

/** What a delivery asks of the receiver. */
export type Asked = {
  name: string
  about: string
  expected: "2xx" | "4xx"
}

/** And what the receiver did. */
export type Trial = Asked & {
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

interface Plan extends Asked {
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

/** Any secret but the right one. */
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
  begun: (asked: Asked) => void
}

/** Sends every delivery of the plan, one after the other. Throws for what is no secret. */
export async function* trials({
  url,
  secret,
  skip_verify,
  begun,
}: Receiver): AsyncGenerator<Trial> {
  if (!isSecret(secret)) throw new TypeError("not a secret")
  const sample = new Sample(secret)
  for (const { send, note, ...plan } of PLANS) {
    begun(plan)
    const parcel = { url, timeout: RECEIVER_MILLISECONDS, skip_verify, ...send(sample) }
    const { status, duration_ms, error } = await post(parcel)
    const passed = fits(plan.expected, status)
    yield { ...plan, passed, response_status: status, duration_ms, error, note: note ?? null }
  }
}

const fits = (expected: Asked["expected"], status: Posted["status"]) =>
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
