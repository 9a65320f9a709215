/**
 * Sign-in with a wrong password, for addresses that have a user and for others, in turn: the medians tell whether
 * time says who exists. People of the console, then end users. Usage: `bun test/bench/sign-in.ts [rounds]`.
 */
import { insertUser } from "../../src/auth/end-users"
import { hash } from "../../src/sign-in/passwords"
import { newApplication } from "../harness/application"
import { testService } from "../harness/service"
import { BEHIND_PROXY, PASSWORD, registered, stranger } from "../identity/entrance"
import { median } from "./bench"

const rounds = Number(process.argv[2] ?? 300)

await using service = await testService(BEHIND_PROXY)
const application = await newApplication(service, await service.project())
const environment = await application.environment()
const password_hash = await hash(PASSWORD)

interface Door {
  register(): Promise<string>
  path: string
  headers: Record<string, string>
}

const doors: Record<string, Door> = {
  "people of the console": {
    register: async () => (await registered(service)).email,
    path: "/v1/session",
    headers: {},
  },
  "end users": {
    async register() {
      const email = newAddress()
      await service.store.tx((tx) => insertUser(tx, environment, { email, password_hash }))
      return email
    },
    path: "/v1/auth/users/login",
    headers: { "x-application-key": application.keys.live },
  },
}

function newAddress() {
  return `${crypto.randomUUID()}@people.test`
}

for (const [who, { register, path, headers }] of Object.entries(doors)) {
  const taken: Record<"known" | "unknown", number[]> = { known: [], unknown: [] }
  for (let round = 0; round < rounds; round++) {
    const turns = [["known", await register()] as const, ["unknown", newAddress()] as const]
    for (const [kind, email] of round % 2 === 0 ? turns : turns.toReversed()) {
      const body = { email, password: "Wrong-Horse-7" }
      const door = stranger(service)
      const begun = performance.now()
      const { status } = await door.call("POST", path, { body, headers })
      taken[kind].push(performance.now() - begun)
      if (status !== 401) throw new Error(`answered ${status}`)
    }
  }
  const [known, unknown] = [median(taken.known), median(taken.unknown)]
  const difference = (Math.abs(known - unknown) / Math.max(known, unknown)) * 100
  console.log(
    `sign-in of ${who} refused: known ${known.toFixed(2)} ms, unknown ${unknown.toFixed(2)} ms, ` +
      `difference ${difference.toFixed(1)} %, ${rounds} rounds`,
  )
}
