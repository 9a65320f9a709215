import { describe, expect, test } from "bun:test"
import { rmSync } from "node:fs"
import { join } from "node:path"
import { generate } from "otplib"
import { makeHome } from "../harness/binary"
import { note } from "../harness/peers"
import { freshDatabase, noPostgres } from "../harness/postgres"
import { sizes } from "../harness/sizes"
import { initialise, startServe } from "./serve"

const GUESSES = Math.min(sizes.guesses, 2000)
const WAVE = 50
const EMAIL = "ann@people.test"
const PASSWORD = "Quiet-River-42"

type Node = Awaited<ReturnType<typeof startServe>>

const has_postgres = !noPostgres()
if (!has_postgres) note("guesses at two nodes: start the tests by `bun run test`")

describe.skipIf(!has_postgres)(
  `${GUESSES} guesses, at two nodes, from everywhere, over a restart`,
  () => {
    test("at a password: ten are judged", async () => {
      await guessing(async ({ one, ask, statuses, waves }) => {
        expect(await ask(one, "users/register", { password: PASSWORD })).toBe(201)
        expect(await ask(one, "users/login", { password: PASSWORD })).toBe(200)
        statuses.clear()
        await waves((at) => ["users/login", { password: `Wrong-Horse-${at}` }])
        expect(Object.fromEntries(statuses)).toEqual({ unauthorized: 10, [LOCKED]: GUESSES - 10 })
        expect(await ask(one, "users/login", { password: PASSWORD })).toBe(429)
      })
    })

    test("at a code: five are judged, and fifteen of an hour get that far", async () => {
      await guessing(async ({ one, ask, statuses, waves }) => {
        const purpose = { purpose: "register" }
        expect(await ask(one, "email-otp/send", purpose)).toBe(200)
        statuses.clear()
        await waves((at) => ["email-otp/verify", { ...purpose, code: String(100_000 + at) }])
        const limited = "otp_verify_rate_limit_exceeded"
        expect(Object.fromEntries(statuses)).toEqual({
          ...{ otp_invalid: 5, otp_max_attempts: 10, [limited]: GUESSES - 15 },
        })
        expect(await ask(one, "email-otp/verify", { ...purpose, code: CODE })).toBe(429)
      })
    })

    test("at a second factor: five of a challenge are judged, and fifteen of an hour", async () => {
      await guessing(async ({ one, ask, answerOf, statuses, waves }) => {
        const me = (await answerOf(one, "users/register", { password: PASSWORD })).data.tokens
        const begun = await answerOf(one, "mfa/enroll", {}, me.access_token)
        const code = await generate({ secret: begun.data.secret })
        const verified = await answerOf(one, "mfa/verify-enrollment", { code }, me.access_token)
        expect(verified.data.enabled).toBe(true)
        statuses.clear()
        let challenge_token = ""
        const signIn = async () => {
          const { data } = await answerOf(one, "users/login", { password: PASSWORD })
          challenge_token = data.mfa_challenge.token
        }
        const challenges = GUESSES / WAVE
        await waves(
          (at) => ["mfa/verify", { challenge_token, totp_code: String(100_000 + at) }],
          signIn,
        )
        // The right code of the enrolment was no guess.
        expect(Object.fromEntries(statuses)).toEqual({
          ...{ "200": challenges, invalid_totp: 15, invalid_mfa: GUESSES - 5 * challenges },
          otp_verify_rate_limit_exceeded: 5 * challenges - 15,
        })
        await signIn()
        const late = { challenge_token, backup_code: begun.data.backup_codes[0] }
        expect(await ask(one, "mfa/verify", late)).toBe(429)
      })
    })
  },
)

const LOCKED = "login_rate_limit_exceeded"
/** Of a person of a review: nothing is sent, and the code is known. */
const CODE = "987654"

interface Guessing extends ReturnType<typeof stranger> {
  one: Node
  /** As many guesses as there are to be, half of them at each node; the second node restarts among them. */
  waves(
    guess: (at: number) => [path: string, body: object],
    begin?: () => Promise<void>,
  ): Promise<void>
}

async function guessing(act: (parts: Guessing) => Promise<void>): Promise<void> {
  await using database = await freshDatabase()
  const homes = [makeHome(), makeHome()] as const
  using _ = {
    [Symbol.dispose]: () => {
      for (const home of homes) rmSync(home, { recursive: true, force: true })
    },
  }
  const env = {
    DATABASE_URL: database.url,
    BELFRY_SECURITY_MASTER_KEY: Buffer.alloc(32, 7).toString("base64"),
    BELFRY_STORAGE_BLOBS_DIR: join(homes[0], "blobs"),
    BELFRY_HTTP_TRUSTED_PROXIES: "127.0.0.1",
  }
  const api_key = await initialise(homes[0], env)
  await using one = await startServe({ home: homes[0], api_key, env })
  let two = await startServe({ home: homes[1], api_key, env })
  try {
    const asking = stranger(await publicKey(one))
    const waves: Guessing["waves"] = async (guess, begin) => {
      for (let tried = 0; tried < GUESSES; tried += WAVE) {
        if (tried === WAVE * 2) {
          await two[Symbol.asyncDispose]()
          two = await startServe({ home: homes[1], api_key, env })
        }
        await begin?.()
        const wave = Array.from({ length: WAVE }, (_, at) =>
          asking.ask(at % 2 === 0 ? one : two, ...guess(tried + at)),
        )
        await Promise.all(wave)
      }
    }
    await act({ ...asking, one, waves })
  } finally {
    await two[Symbol.asyncDispose]()
  }
}

async function publicKey(node: Node): Promise<string> {
  const body = JSON.stringify({ name: "Shop" })
  const response = await node.request("/v1/auth/applications", { method: "POST", body })
  expect(response.status).toBe(201)
  const { data } = (await response.json()) as { data: { id: string; public_keys: Keys } }
  const path = `/v1/auth/applications/${data.id}/environments/live`
  const test_identifiers = [{ email: EMAIL, code: CODE }]
  const change = { method: "PATCH", body: JSON.stringify({ test_identifiers }) }
  expect((await node.request(path, change)).status).toBe(200)
  return data.public_keys.live
}

interface Keys {
  live: string
}

interface AnyAnswer {
  // biome-ignore lint/suspicious/noExplicitAny: answers of several routes
  data?: any
  error?: { code: string }
}

/** Somebody whose every request comes from another address. */
function stranger(key: string) {
  /** How often each code of an error came; of a success its status. */
  const statuses = new Map<string, number>()
  let asked = 0
  const asking = async (node: Node, path: string, more: object, token?: string) => {
    asked += 1
    const response = await fetch(`${node.url}/v1/auth/${path}`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "x-application-key": key,
        "x-forwarded-for": `10.0.${asked >> 8}.${asked & 255}`,
        ...(token && { authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify({ email: EMAIL, ...more }),
    })
    const body = (await response.json()) as AnyAnswer
    const said = body.error?.code ?? String(response.status)
    statuses.set(said, (statuses.get(said) ?? 0) + 1)
    return { status: response.status, body }
  }
  const ask = async (...about: Parameters<typeof asking>) => (await asking(...about)).status
  const answerOf = async (...about: Parameters<typeof asking>) => (await asking(...about)).body
  return { ask, answerOf, statuses }
}
