/**
 * What strangers ask with an address that has a user and with another one, in turn: the medians tell whether time says
 * who exists. Usage: `bun test/bench/user-sign-in.ts [--quick]`.
 */

import * as passwords from "../../src/sign-in/passwords"
import { newApplication, signedUp } from "../harness/application"
import { testService } from "../harness/service"

const ROUNDS = process.argv.includes("--quick") ? 100 : 1000
const MOST_DIFFERENCE = 0.05
const PASSWORD = "Quiet-River-42"

await using service = await testService({ trusted_proxies: ["127.0.0.1"] })
const settings = { require_verified_email: true, hide_account_existence: true }
const own = await newApplication(service, await service.project(), { settings })
const password_hash = await passwords.hash(PASSWORD)
const app = own.app()
let asked = 0

/** Each request comes from a network of its own. */
async function timed(path: string, body: object, status: number): Promise<number> {
  asked += 1
  const ip = `10.${asked >> 16}.${(asked >> 8) & 255}.${asked & 255}`
  const begun = performance.now()
  const answer = await app.post(path, body, { "x-forwarded-for": ip })
  if (answer.status !== status) throw new Error(`${path} was answered ${answer.status}`)
  return performance.now() - begun
}

const asks = {
  login: (email: string) =>
    timed("/v1/auth/users/login", { email, password: "Wrong-Horse-7" }, 401),
  register: (email: string) => timed("/v1/auth/users/register", { email, password: PASSWORD }, 201),
  forgot: (email: string) => timed("/v1/auth/forgot-password", { email }, 200),
}

const median = (all: number[]) => all.toSorted((a, b) => a - b)[all.length >> 1] ?? Number.NaN
let is_met = true
for (const [name, ask] of Object.entries(asks)) {
  const taken: Record<"known" | "unknown", number[]> = { known: [], unknown: [] }
  for (let round = 0; round < ROUNDS; round++) {
    const { email } = await signedUp(service, own, { password_hash })
    const turns = [
      ["known", email ?? ""],
      ["unknown", `${crypto.randomUUID()}@users.test`],
    ] as const
    for (const [kind, one] of round % 2 === 0 ? turns : turns.toReversed())
      taken[kind].push(await ask(one))
  }
  const [known, unknown] = [median(taken.known), median(taken.unknown)]
  const difference = Math.abs(known - unknown) / Math.max(known, unknown)
  is_met &&= difference <= MOST_DIFFERENCE
  console.log(
    `${name}: known ${known.toFixed(2)} ms, unknown ${unknown.toFixed(2)} ms, ` +
      `difference ${(difference * 100).toFixed(1)} % (≤ 5 %), ${ROUNDS} rounds`,
  )
}
process.exit(is_met ? 0 : 1)
