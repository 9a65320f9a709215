import { expect, test } from "bun:test"
import type { Workers } from "../../src/core/workers"
import { compose } from "../../src/emails/compose-email"
import type { ComposedMail, MailToCompose } from "../../src/emails/compose-task"
import { composeAll } from "../../src/emails/compose-task"
import { MAIL } from "./composed"

interface Query {
  task: string
  input: unknown
  answer(): Promise<void>
}

/** Threads that answer when they are told to. */
function slowWorkers() {
  const asked: Query[] = []
  const run = (task: string, input: unknown) =>
    new Promise<unknown>((resolve) => {
      asked.push({ task, input, answer: async () => resolve(await composeAll(input as never)) })
    })
  return { asked, workers: { run, close: async () => {} } as Workers }
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

const mails = (count: number): MailToCompose[] =>
  Array.from({ length: count }, (_, number) => ({ ...MAIL, subject: `Ding ${number}` }))

const subjectOf = ({ raw }: ComposedMail) =>
  /^Subject: (.*)\r$/m.exec(Buffer.from(raw).toString())?.[1]

test("mail of one turn goes in two batches, what comes meanwhile in the next, each to its caller", async () => {
  const { asked, workers } = slowWorkers()
  const all = mails(60).map((mail) => compose(workers, mail))
  await turn()
  expect(asked.map(({ input }) => (input as unknown[]).length)).toEqual([16, 16])
  for (const done of [0, 1, 2, 3]) {
    await asked[done]?.answer()
    await turn()
  }
  expect(asked.map(({ input }) => (input as unknown[]).length)).toEqual([16, 16, 16, 12])
  const subjects = (await Promise.all(all)).map(subjectOf)
  expect(subjects).toEqual(mails(60).map(({ subject }) => subject))
})

test("one mail alone does not wait for others, and one with files goes by itself", async () => {
  const { asked, workers } = slowWorkers()
  const alone = compose(workers, MAIL)
  void compose(workers, { ...MAIL, html: "x".repeat(100_000) })
  await turn()
  expect(asked.map(({ task }) => task).sort()).toEqual(["compose", "compose-batch"])
  await asked.find(({ task }) => task === "compose-batch")?.answer()
  expect(subjectOf(await alone)).toBe("Ding")
})

test("what is wrong with one mail is told to its caller alone", async () => {
  const { asked, workers } = slowWorkers()
  const good = compose(workers, MAIL)
  const bad = compose(workers, { ...MAIL, subject: "a\rb" }).catch((error: Error) => error.name)
  await turn()
  for (const { answer } of asked) await answer()
  expect(await bad).toBe("Uncomposable")
  expect(subjectOf(await good)).toBe("Ding")
})

test("a thread that dies fails its own batch, and the next one goes on", async () => {
  let calls = 0
  const run = async (_: string, input: unknown) => {
    calls += 1
    if (calls === 1) throw new Error("the worker thread died")
    return composeAll(input as never)
  }
  const workers = { run, close: async () => {} } as unknown as Workers
  expect(await compose(workers, MAIL).catch((error: Error) => error.message)).toContain("died")
  expect(subjectOf(await compose(workers, MAIL))).toBe("Ding")
})
