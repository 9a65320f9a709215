/**
 * Sign-in with a wrong password, for addresses that have a user and for others, in turn: the
 * medians tell whether time says who exists. Usage: `bun test/bench/sign-in.ts [rounds]`.
 */
import { testService } from "../harness/service"
import { BEHIND_PROXY, registered, stranger } from "../identity/entrance"

const rounds = Number(process.argv[2] ?? 300)

await using service = await testService(BEHIND_PROXY)
const taken: Record<"known" | "unknown", number[]> = { known: [], unknown: [] }

for (let round = 0; round < rounds; round++) {
  const { email } = await registered(service)
  const unknown = `${crypto.randomUUID()}@people.test`
  const turns = [["known", email] as const, ["unknown", unknown] as const]
  for (const [kind, one] of round % 2 === 0 ? turns : turns.toReversed()) {
    const door = stranger(service)
    const begun = performance.now()
    const { status } = await door.post("/v1/session", { email: one, password: "Wrong-Horse-7" })
    taken[kind].push(performance.now() - begun)
    if (status !== 401) throw new Error(`answered ${status}`)
  }
}

const median = (all: number[]) => all.toSorted((a, b) => a - b)[Math.floor(all.length / 2)] ?? 0
const [known, unknown] = [median(taken.known), median(taken.unknown)]
const difference = (Math.abs(known - unknown) / Math.max(known, unknown)) * 100
console.log(
  `sign-in refused: known ${known.toFixed(2)} ms, unknown ${unknown.toFixed(2)} ms, ` +
    `difference ${difference.toFixed(1)} %, ${rounds} rounds`,
)
