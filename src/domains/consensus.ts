import type { ZoneFault } from "./authoritative"
import { isReached, LAME } from "./authoritative"
import type { RecordResult } from "./check-result"
import type { RecordCheck, ServerAnswer } from "./tables"

/**
 * Combines the answers of all servers. A record is present when every reachable server has it,
 * and the result is unknown when no server can be reached.
 */
export async function consensus(
  answers: ServerAnswer[],
  check: (values: string[]) => Promise<RecordResult>,
): Promise<RecordCheck> {
  const reached = answers.filter(isReached)
  if (reached.length === 0) return unresolved(answers) ?? unanswered(answers, silence(answers))
  const results = new Map<string, Promise<RecordResult>>()
  const resultOf = ({ values }: ServerAnswer) => {
    const text = JSON.stringify([...values].sort())
    const result = results.get(text) ?? check(values)
    results.set(text, result)
    return result
  }
  const checked = await Promise.all(
    reached.map(async (answer) => ({ ...answer, result: await resultOf(answer) })),
  )
  const found = [...new Set(reached.flatMap(({ values }) => values))]
  const bad = checked.filter(({ result }) => !result.ok)
  // What is wrong for certain at one server is not put right by what is open at another.
  const wrong = bad.filter(({ result }) => !result.ok && result.status !== "pending")
  const worst = wrong[0] ?? bad[0]
  if (!worst || worst.result.ok) {
    return { ...fine(checked[0]?.result, answers), found, answers }
  }
  const { status, mistake, hint, difference = null } = worst.result
  const base = { found, answers, difference }
  const good = checked.filter(({ result }) => result.ok)
  if (status === "pending") return { ...base, status, mistake, hint }
  if (good.length > 0) {
    const text = `${names(good)} has the record, but ${names(wrong)} has another version of the zone. ${hint}`
    return { ...base, status: "mismatch", mistake: "servers_disagree", hint: text }
  }
  const via = status === "mismatch" || reached.some(({ alias }) => alias) ? aliasOf(reached) : null
  if (via) {
    const text = `The name is an alias (CNAME) of ${via}, so the records there count. ${hint}`
    return { ...base, status, mistake: "alias_in_the_way", hint: text }
  }
  return { ...base, status, mistake, hint }
}

function fine(result: RecordResult | undefined, answers: ServerAnswer[]) {
  const silent = answers.filter((answer) => !isReached(answer))
  const [first] = silent
  const base = { status: "verified" as const, difference: null }
  if (result?.ok && result.mistake) {
    return { ...base, mistake: result.mistake, hint: result.hint ?? null }
  }
  if (!first) return { ...base, mistake: null, hint: null }
  const hint = `${names(silent)} did not answer (${first.answer}). Have it repaired, because receivers ask it, too.`
  return { ...base, mistake: "server_failing", hint }
}

/** No server answered about the name, so the state of the record is unknown. */
export const unanswered = (answers: ServerAnswer[], hint: string): RecordCheck => ({
  status: "pending",
  found: [],
  hint,
  mistake: "unanswered",
  difference: null,
  answers,
})

/** The name is an alias, and the alias could not be resolved. */
function unresolved(answers: ServerAnswer[]): RecordCheck | undefined {
  const led = answers.find(({ alias }) => alias !== null)
  if (!led) return undefined
  const hint = `The name is an alias (CNAME) of ${led.alias}, which cannot be resolved (${led.server}: ${led.answer}). Nothing is lost; the next check asks again.`
  return { ...unanswered(answers, hint), mistake: "alias_unresolved" }
}

/** No server could be asked: every record gets this result. */
export const noServers = ({ status, mistake, hint }: ZoneFault): RecordCheck => ({
  ...unanswered([], hint),
  status,
  mistake,
})

const LAME_ANSWERS = ["REFUSED", "NOTAUTH", LAME]

function silence(answers: ServerAnswer[]): string {
  const said = answers.map(({ server, answer }) => `${server}: ${answer}`).join("; ")
  const lame = answers.length > 0 && answers.every(({ answer }) => LAME_ANSWERS.includes(answer))
  if (lame)
    return `The name servers of the domain do not know it (${said}). Check that the zone is set up there.`
  return `No name server of the domain answers (${said}). Nothing is lost; the next check asks again.`
}

const aliasOf = (reached: ServerAnswer[]) => reached.find(({ alias }) => alias)?.alias ?? null

const names = (answers: ServerAnswer[]) => answers.map(({ server }) => server).join(", ")
