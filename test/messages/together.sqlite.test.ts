import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { READY } from "../../src/jobs/work-item"
import { feedback } from "../../src/messages/settle"
import { messages } from "../../src/messages/tables"
import { quietLog } from "../harness/quiet"
import { WorkLoops } from "../harness/work-loops"
import { outcome, told } from "./letters"
import { postOffice } from "./post-office"

quietLog()

const TO = "to@example.test"
const delivered = () => outcome([told(TO, { status: "delivered" })])

/** Delivers what was accepted just now, by a loop that keeps its claims in memory. */
async function delivers({ store, work }: Awaited<ReturnType<typeof postOffice>>, id: string) {
  const loop = new WorkLoops({ store, work, concurrency: 5, lease_ms: 30_000, alone: true })
  await loop.start()
  const waits = async () => {
    const [row] = await store.read.select().from(messages).where(eq(messages.id, id))
    return row?.state === READY // also while it is claimed in memory
  }
  while ((await waits()) || loop.running > 0) await Bun.sleep(1)
  await loop.stop(1000)
}

test("what is said of a message while it is delivered stays, though its row is not read again", async () => {
  const during: (() => Promise<void>)[] = []
  const script = async () => {
    await during.shift()?.()
    return delivered()
  }
  await using office = await postOffice(script, script, script)
  const complain = (id: string) =>
    office.store.tx((tx) =>
      feedback(tx, id, {
        type: "complained",
        address: TO,
        complaint_feedback_type: "abuse",
      }),
    )

  const plain = await office.accept()
  during.push(async () => {})
  await delivers(office, plain)
  expect(await office.read(plain)).toMatchObject({ status: "delivered", attempts: 1 })

  const complained = await office.accept()
  during.push(() => complain(complained))
  await delivers(office, complained)
  expect(await office.read(complained)).toMatchObject({ status: "complained", attempts: 1 })

  const deleted = await office.accept()
  during.push(async () => {
    await office.store.tx((tx) => tx.delete(messages).where(eq(messages.id, deleted)))
  })
  await delivers(office, deleted)
  expect(await office.attempts(deleted)).toEqual([])
})
