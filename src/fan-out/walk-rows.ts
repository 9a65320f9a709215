import { and, eq } from "drizzle-orm"
import { forUpdate } from "../store/dialect"
import { prepared } from "../store/statements"
import type { Reader, Tx } from "../store/store"
import { fanOutParts, fanOuts } from "./tables"

// What each chunk of a walk reads and writes. A publish has thousands of chunks, so these are prepared.

const { fan_out_id, part } = fanOutParts

/** The fan-out with this id; undefined where it was removed. */
export async function lookupFanOut(db: Reader, id: string) {
  const [row] = await findFanOut(db, { id })
  return row
}

const findFanOut = prepared({ id: fanOuts.id }, (db: Reader, slot) =>
  db.select().from(fanOuts).where(eq(fanOuts.id, slot.id)),
)

interface PlaceOfPart {
  fan_out_id: string
  part: number
}

/** How far a part is walked; undefined where its fan-out is over. */
export async function lookupPart(db: Reader, place: PlaceOfPart) {
  const [row] = await findPart(db, place)
  return row
}

const findPart = prepared({ fan_out_id, part }, (db: Reader, slot) =>
  db
    .select()
    .from(fanOutParts)
    .where(and(eq(fan_out_id, slot.fan_out_id), eq(part, slot.part))),
)

/** As `lookupPart`, and nobody else walks in it before the transaction ends. */
export async function holdPart(tx: Tx, place: PlaceOfPart) {
  const [row] = await findHeldPart(tx, place)
  return row
}

const findHeldPart = prepared({ fan_out_id, part }, (tx: Tx, slot) =>
  forUpdate(
    tx
      .select()
      .from(fanOutParts)
      .where(and(eq(fan_out_id, slot.fan_out_id), eq(part, slot.part))),
  ),
)

/** Notes the number of the last member that is behind the walk. */
export const moveCursor = prepared(
  { fan_out_id, part, cursor: fanOutParts.cursor },
  (tx: Tx, slot) =>
    tx
      .update(fanOutParts)
      .set({ cursor: slot.cursor })
      .where(and(eq(fan_out_id, slot.fan_out_id), eq(part, slot.part))),
)
