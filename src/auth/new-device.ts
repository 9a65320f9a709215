import { and, desc, eq, isNull, ne } from "drizzle-orm"
import { enqueue, type JobKind } from "../jobs/jobs"
import { noticeSchedule } from "../jobs/work-item"
import { networkOf } from "../lib/ip-ranges"
import type { Reader, Tx } from "../store/store"
import { userSessions } from "./tables"
import { familyOf } from "./user-devices"

export interface SeenDevice {
  session_id: string
}

/** Tells a user of a sign-in from a device that their earlier ones did not have. */
export const newDeviceSeen: JobKind<SeenDevice> = {
  name: "auth.new_device",
  schedule: noticeSchedule,
}

/** As many of the last sign-ins of a user are looked at. */
const MOST_EARLIER = 100

/**
 * Has the user told, where they signed in before, and never with this family of program from this network. What
 * somebody else did as the user does not count.
 */
export async function tellOfNewDevice(
  tx: Tx,
  session: typeof userSessions.$inferSelect,
): Promise<void> {
  if (!(await isNew(tx, session))) return
  const { id: session_id, project_id } = session
  await enqueue(tx, newDeviceSeen, { payload: { session_id }, project_id })
}

async function isNew(db: Reader, session: typeof userSessions.$inferSelect): Promise<boolean> {
  const { ip, user_agent, user_id, id, act } = userSessions
  const earlier = await db
    .select({ ip, user_agent })
    .from(userSessions)
    .where(and(eq(user_id, session.user_id), ne(id, session.id), isNull(act)))
    .orderBy(desc(id))
    .limit(MOST_EARLIER)
  const own = placeOf(session)
  return earlier.length > 0 && earlier.every((one) => placeOf(one) !== own)
}

const placeOf = ({ ip, user_agent }: { ip: string | null; user_agent: string | null }) =>
  `${familyOf(user_agent ?? "")} ${networkOf(ip ?? "")}`
