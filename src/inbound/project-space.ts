import { eq } from "drizzle-orm"
import { accounts, projects } from "../identity/tables"
import { limitsOf } from "../plans/plans"
import { MB, storedTotal } from "../plans/stored-bytes"
import { refusalText, SmtpReplyError } from "../smtp/mail-session"
import { cached } from "../store/cached"
import type { Reader, Store } from "../store/store"
import { firstProject } from "../tenancy/setup"
import { notifyOfShare, passedShare } from "../tenancy/stored-share"

/** How long another node may go on believing what this one knows to have changed. */
const TRUSTED_MS = 1000

/**
 * Throws 452 4.2.2 where the project stores all that its plan allows, and tells its owners when that comes
 * near. Without a project it is the first one, which the mail to the instance itself belongs to.
 */
export async function requireSpace(store: Store, project_id = ""): Promise<void> {
  const { read } = store
  const owner = await known(read, project_id, () => ownerOf(read, project_id), TRUSTED_MS)
  const limit_mb = owner ? limitsOf(owner).stored_mb : null
  if (!owner || limit_mb === null) return
  const share = { ...owner, limit_mb }
  const total = await storedTotal(read, owner.project_id)
  if (passedShare(share, total.used) > total.told) {
    await store.tx((tx) => notifyOfShare(tx, share, total))
  }
  if (total.used < limit_mb * MB) return
  const text = "The storage of the recipient is full. Try again later"
  throw new SmtpReplyError(452, "4.2.2", refusalText("plan_limit_exceeded", text))
}

type Owner = Awaited<ReturnType<typeof ownerOf>>

/** It is asked for each recipient. */
const known = cached<Owner>({ tables: ["accounts", "projects"] })

async function ownerOf(read: Reader, given: string) {
  const project_id = given === "" ? (await firstProject(read))[0]?.project_id : given
  if (project_id === undefined) return undefined
  const { id: account_id, plan, limits } = accounts
  const [row] = await read
    .select({ account_id, plan, limits })
    .from(projects)
    .innerJoin(accounts, eq(accounts.id, projects.account_id))
    .where(eq(projects.id, project_id))
  return row && { ...row, project_id }
}
