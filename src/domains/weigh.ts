import { isReached, LAME } from "./authoritative"
import type { Trouble } from "./delegation"
import type { Verdict } from "./judges/verdict"
import type { RecordCheck, ServerAnswer } from "./tables"

export type Reading = RecordCheck

/**
 * What all servers' answers come to: a record counts when every server that can be reached has it,
 * and nothing is known when none can.
 */
export async function weigh(
  answers: ServerAnswer[],
  judge: (values: string[]) => Promise<Verdict>,
): Promise<Reading> {
  const reached = answers.filter(isReached)
  if (reached.length === 0) return unresolved(answers) ?? unanswered(answers, silence(answers))
  const known = new Map<string, Promise<Verdict>>()
  const verdictOf = ({ values }: ServerAnswer) => {
    const text = JSON.stringify([...values].sort())
    const verdict = known.get(text) ?? judge(values)
    known.set(text, verdict)
    return verdict
  }
  const judged = await Promise.all(
    reached.map(async (answer) => ({ ...answer, verdict: await verdictOf(answer) })),
  )
  const found = [...new Set(reached.flatMap(({ values }) => values))]
  const bad = judged.filter(({ verdict }) => !verdict.ok)
  // What is wrong for certain at one server is not put right by what is open at another.
  const wrong = bad.filter(({ verdict }) => !verdict.ok && verdict.status !== "pending")
  const worst = wrong[0] ?? bad[0]
  if (!worst || worst.verdict.ok) {
    return { ...fine(judged[0]?.verdict, answers), found, answers }
  }
  const { status, mistake, hint, difference = null } = worst.verdict
  const base = { found, answers, difference }
  const good = judged.filter(({ verdict }) => verdict.ok)
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

function fine(verdict: Verdict | undefined, answers: ServerAnswer[]) {
  const silent = answers.filter((answer) => !isReached(answer))
  const [first] = silent
  const base = { status: "verified" as const, difference: null }
  if (verdict?.ok && verdict.mistake) {
    return { ...base, mistake: verdict.mistake, hint: verdict.hint ?? null }
  }
  if (!first) return { ...base, mistake: null, hint: null }
  const hint = `${names(silent)} did not answer (${first.answer}). Have it repaired, because receivers ask it, too.`
  return { ...base, mistake: "server_failing", hint }
}

/** Nobody spoke about the name: that says nothing about the record. */
export const unanswered = (answers: ServerAnswer[], hint: string): Reading => ({
  status: "pending",
  found: [],
  hint,
  mistake: "unanswered",
  difference: null,
  answers,
})

/** The name is an alias, says whoever speaks for it, and what is there nobody can tell. */
function unresolved(answers: ServerAnswer[]): Reading | undefined {
  const led = answers.find(({ alias }) => alias !== null)
  if (!led) return undefined
  const hint = `The name is an alias (CNAME) of ${led.alias}, which cannot be resolved (${led.server}: ${led.answer}). Nothing is lost; the next check asks again.`
  return { ...unanswered(answers, hint), mistake: "alias_unresolved" }
}

/** There is nobody to ask: the same for every record. */
export const nobody = ({ status, mistake, hint }: Trouble): Reading => ({
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
